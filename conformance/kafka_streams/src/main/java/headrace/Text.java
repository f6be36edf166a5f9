package headrace;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/** Bytes as the fixture spells them: printable ASCII as it is, anything else as 0x and hexadecimal digits. */
final class Text {
    private Text() { }

    static String show(final byte[] data) {
        if (data == null) {
            return null;
        }
        boolean printable = true;
        for (final byte one : data) {
            printable &= one >= 0x20 && one < 0x7f;
        }
        final String plain = new String(data, StandardCharsets.ISO_8859_1);
        return printable && !plain.startsWith("0x") ? plain : "0x" + HexFormat.of().formatHex(data);
    }

    /** A key or value of a step: the topology's serde of the object's class makes bytes of it. */
    static byte[] bytes(final Object value) {
        if (value == null) {
            return null;
        }
        if (value instanceof byte[]) {
            return (byte[]) value;
        }
        if (value instanceof Long) {
            return ByteBuffer.allocate(8).putLong((Long) value).array();
        }
        if (value instanceof Integer) {
            return ByteBuffer.allocate(4).putInt((Integer) value).array();
        }
        if (value instanceof Double) {
            return ByteBuffer.allocate(8).putDouble((Double) value).array();
        }
        return ((String) value).getBytes(StandardCharsets.UTF_8);
    }
}
