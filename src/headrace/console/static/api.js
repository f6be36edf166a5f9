// Requests to the server that has served the page, with its token if it asks for one.

const KEPT = "headrace-token";

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.isUnknown = status === 404;
  }
}

function headers() {
  const token = sessionStorage.getItem(KEPT);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

export async function get(path, options = {}) {
  const answer = await fetch(path, { headers: headers(), signal: options.signal });
  if (answer.status === 401 && askForToken()) return get(path, options);
  const kind = answer.headers.get("content-type") ?? "";
  const body = kind.includes("json") ? await answer.json() : await answer.text();
  if (!answer.ok) throw new Refused(body?.error?.message ?? body?.message ?? `${answer.status} ${answer.statusText}`, answer.status);
  return body;
}

let asked = false;
function askForToken() {
  if (asked) return false;
  asked = true;
  const token = prompt("This console is protected. Its token:");
  if (!token) return false;
  sessionStorage.setItem(KEPT, token.trim());
  asked = false;
  return true;
}

// Sends an object, and hands over the answer's lines of JSON as they come, all that came together at once.
export async function send(path, body, onLines, signal) {
  const answer = await fetch(path, { method: "POST", headers: { ...headers(), "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
  if (!answer.ok) throw new Refused((await answer.json().catch(() => null))?.message ?? `${answer.status} ${answer.statusText}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (waiting + value).split("\n");
    waiting = lines.pop();
    if (lines.length) onLines(lines.map((line) => JSON.parse(line)));
  }
}

// Reads server-sent events with fetch, because EventSource cannot send a token.
export async function follow(path, onEvent, signal) {
  const answer = await fetch(path, { headers: { ...headers(), Accept: "text/event-stream" }, signal });
  if (!answer.ok) throw new Refused(`${answer.status} ${answer.statusText}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    waiting += value;
    const events = waiting.split("\n\n");
    waiting = events.pop();
    for (const event of events) {
      const lines = event.split("\n");
      const name = lines.find((line) => line.startsWith("event:"))?.slice(6).trim() ?? "message";
      const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
      if (data) onEvent(name, JSON.parse(data));
    }
  }
}
