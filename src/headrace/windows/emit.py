"""Emit strategy of a windowed aggregation: at every update, or once when the window closes."""

from __future__ import annotations

from enum import Enum


class EmitStrategy(Enum):
    """When a windowed aggregation forwards a window's result: at every update (the default), or once, when it closes.

    A window closes when stream time passes its end by the grace period; only records move stream time.

    >>> EmitStrategy.on_window_close()
    <EmitStrategy.ON_WINDOW_CLOSE: 'on_window_close'>
    """

    ON_WINDOW_UPDATE = "on_window_update"
    ON_WINDOW_CLOSE = "on_window_close"

    @classmethod
    def on_window_update(cls) -> EmitStrategy:
        """Forwards a window's result whenever it changes.

        >>> EmitStrategy.on_window_update() is EmitStrategy.ON_WINDOW_UPDATE
        True
        """
        return cls.ON_WINDOW_UPDATE

    @classmethod
    def on_window_close(cls) -> EmitStrategy:
        """Forwards a window's result once, when no record can change it any more.

        >>> EmitStrategy.on_window_close() is EmitStrategy.ON_WINDOW_CLOSE
        True
        """
        return cls.ON_WINDOW_CLOSE
