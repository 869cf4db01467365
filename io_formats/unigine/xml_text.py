"""Format texts for XML as the editor writes them."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}
_ESCAPED |= {sign: f"&#{ord(sign)};" for sign in "\t\n\r"}
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
SHORT_NUMBER = "%.8g"
"""Format of the numbers of matrices, except in projects of the double-precision build."""


def printable(text: str) -> str:
    """Replace characters that XML cannot contain by underscores."""
    return _NOT_IN_XML.sub("_", text)


def escaped(text: str) -> bytes:
    """Escape a text for use as the value of an attribute or the content of an element."""
    return "".join(_ESCAPED.get(sign, sign) for sign in printable(text)).encode()


def matrix_words(matrix: npt.NDArray[np.float64], number: str = SHORT_NUMBER) -> list[str]:
    """Return the 16 numbers of a (4, 4) matrix as texts, column after column."""
    words = [number % (value + 0.0) for value in matrix.T.reshape(-1).tolist()]
    words[3::4] = ["0.0", "0.0", "0.0", "1.0"]
    return words


def transform_element(words: list[str]) -> bytes:
    """Return the XML element of a matrix from the texts of its numbers."""
    return b"<transform>" + " ".join(words).encode() + b"</transform>"
