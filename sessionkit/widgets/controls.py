"""What can be set on a board, by a person or by Python: lengths of time, steps, choices, texts, buttons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from sessionkit.base.durations import Duration, duration_ms, show_duration
from sessionkit.errors import InvalidArgument, problem
from sessionkit.widgets.tuner import ladder


class Control:
    """Something on a board that a person or Python sets; its board hears of each change.

    A person reads `label` and `hint`; only the `views` of the board that are named show it, or all of them.
    """

    kind: ClassVar[str]
    _shown: Any = None

    def __init__(self, name: str, label: str, hint: str = "", views: Sequence[str] = ()) -> None:
        self.name, self.label, self.hint, self.views = name, label, hint, tuple(views)
        self.on_change: Callable[[Control], None] = lambda _: None  # its board's

    def spec(self) -> dict[str, Any]:
        """What the browser makes it from."""
        return {"name": self.name, "kind": self.kind, "label": self.label, "hint": self.hint, "views": self.views}

    @property
    def shown(self) -> Any:
        """What it is set to, as the browser shows it."""
        return self._shown

    def take(self, sent: Any) -> None:
        """Sets it to what a browser sent; what it cannot be set to changes nothing."""
        if self._can_be(sent) and sent != self._shown:
            self._shown = sent
            self.on_change(self)

    def _can_be(self, sent: Any) -> bool:
        return False


class Slider(Control):
    """A slider over what `words` name."""

    kind = "slider"
    words: list[str]

    @property
    def place(self) -> int:
        """Which of them it stands on, from 0; can be set."""
        return int(self.shown)

    @place.setter
    def place(self, place: int) -> None:
        self.take(place)

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "words": self.words}


class Steps(Slider):
    """A slider over steps that have names."""

    def __init__(self, name: str, label: str, words: Sequence[str], place: int, **options: Any) -> None:
        super().__init__(name, label, **options)
        self.words, self._shown = list(words), place

    def _can_be(self, sent: Any) -> bool:
        return isinstance(sent, int) and 0 <= sent < len(self.words)


class Length(Slider):
    """A length of time: a slider over round lengths, and a field for any other."""

    def __init__(self, name: str, steps_ms: Sequence[int], value_ms: int) -> None:
        super().__init__(name, name.replace("_", " "), "a number with a unit, such as 1h 30m")
        self._steps_ms = list(steps_ms)
        self.choose(value_ms)

    def choose(self, value_ms: int) -> None:
        """Sets the length without a word to the board; one that is no step becomes one."""
        self._steps_ms = sorted({*self._steps_ms, value_ms})
        self.words = [show_duration(ms) for ms in self._steps_ms]
        self.value_ms, self.refused = value_ms, ""

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "typed": True, "refused": self.refused}

    @property
    def shown(self) -> Any:
        return self._steps_ms.index(self.value_ms)

    def take(self, sent: Any) -> None:
        if isinstance(sent, str):
            try:
                self.choose(duration_ms(sent, self.label))
            except InvalidArgument as error:
                self.refused = str(error)
        elif isinstance(sent, int) and 0 <= sent < len(self._steps_ms):
            self.choose(self._steps_ms[sent])
        self.on_change(self)


class Choice(Control):
    """One of some values, each with what a person reads: "buttons", a "list", or "tabs" for what the board shows."""

    kind = "choice"

    def __init__(
        self, name: str, label: str, options: Sequence[tuple[str, Any]], value: Any, *, look: str, **more: Any
    ) -> None:
        super().__init__(name, label, **more)
        self.kind = look  # type: ignore[misc]
        self.offer(options, value)

    @property
    def value(self) -> Any:
        """What is chosen; can be set."""
        return self.options[self._shown][1] if self._shown >= 0 else None

    @value.setter
    def value(self, value: Any) -> None:
        self.take(self._place_of(value))

    def offer(self, options: Sequence[tuple[str, Any]], value: Any) -> None:
        """Exchanges the options without a word to the board."""
        self.options = list(options)
        self._shown = self._place_of(value)

    def _place_of(self, value: Any) -> int:
        return next((at for at, (_, each) in enumerate(self.options) if each == value), -1)

    def spec(self) -> dict[str, Any]:
        values = [str(value) for _, value in self.options] if self.kind == "tabs" else []
        return {**super().spec(), "words": [words for words, _ in self.options], "options": values}

    def _can_be(self, sent: Any) -> bool:
        return isinstance(sent, int) and 0 <= sent < len(self.options)


class Field(Control):
    """A line of text."""

    kind = "field"

    def __init__(self, name: str, label: str, value: str = "", **options: Any) -> None:
        super().__init__(name, label, **options)
        self._shown = value

    @property
    def value(self) -> str:
        """The text; can be set."""
        return str(self._shown)

    @value.setter
    def value(self, value: str) -> None:
        self.take(value)

    def _can_be(self, sent: Any) -> bool:
        return isinstance(sent, str)


class Button(Control):
    """Something to do."""

    kind = "button"

    def take(self, sent: Any) -> None:
        self.on_change(self)


class Switch(Control):
    """On or off."""

    kind = "switch"
    _shown = False

    def _can_be(self, sent: Any) -> bool:
        return isinstance(sent, bool)


class Play(Control):
    """A button that moves the slider of this name on, step by step: the browser does it."""

    kind = "play"

    def __init__(self, name: str, label: str, slider: str, step_ms: int) -> None:
        super().__init__(name, label)
        self._slider, self._step_ms = slider, step_ms

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "slider": self._slider, "step_ms": self._step_ms}


def sliders_of(settings: Mapping[str, int], spans: Mapping[str, tuple[Duration, Duration]]) -> dict[str, Length]:
    """A slider for each of these lengths, over a span that is given, or around what it is set to."""
    unknown = [name for name in spans if name not in settings]
    if unknown:
        raise InvalidArgument(problem("these windows have no such length", repr(unknown[0]), f"one of {[*settings]}"))
    longest = max(settings.values())
    return {
        name: Length(name, ladder(value, value or longest, spans.get(name), name), value)
        for name, value in settings.items()
    }
