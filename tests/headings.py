"""What is written above a picture, as a person reads it."""

import re
from typing import Any


def heading(figure: Any) -> str:
    """The title and the sentences below it, without the line breaks and styles that they are drawn with."""
    return re.sub(r"</?(?:b|span)[^>]*>", "", figure.layout.title.text.replace("<br>", " "))
