"""Captured text as it may be shown to people, on a page or in a terminal."""

import unicodedata

# Controls, formats (they turn the direction of writing), lone surrogates, separators of lines and paragraphs.
ACTING_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def visible(text: str, characters_maximum: int) -> str:
    """The text, cut to so many characters, with every character spelt out that would act unseen.

    A terminal obeys controls and a page the marks that turn the direction of writing; names on the wire may
    hold both. What was cut off is told by its length.
    """
    shown = text[:characters_maximum]
    if not shown.isprintable():
        shown = "".join(map(_spelt, shown))
    left_out = len(text) - characters_maximum
    return f"{shown}… ({left_out:,} more)" if left_out > 0 else shown


def _spelt(character: str) -> str:
    if unicodedata.category(character) in ACTING_CATEGORIES:
        return f"\\u{ord(character):04x}"
    return character
