"""Texts inside words and bytes: base64 and hexadecimal, compressed files, archives, and text in the middle of a binary file."""

import base64
import binascii
import bz2
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Final

LIMIT: Final = 4 * 2**20
"""Bytes of one text that are unpacked; a Kubernetes object has at most 1.5 MiB (etcd's limit)."""
_LAYERS: Final = 3
"""Files in files: a zip in a gzip, and one more."""
_RUN: Final = re.compile(rb"[\x20-\x7e\t\r\n]{19,}")
"""Text in a binary file, no shorter than the shortest key that is looked for."""
_MAGIC: Final[tuple[tuple[bytes, Callable[[bytes], bytes]], ...]] = (
    (b"\x1f\x8b", lambda data: zlib.decompressobj(31).decompress(data, LIMIT)),
    (b"\x78\x01", lambda data: zlib.decompressobj().decompress(data, LIMIT)),
    (b"\x78\x9c", lambda data: zlib.decompressobj().decompress(data, LIMIT)),
    (b"\x78\xda", lambda data: zlib.decompressobj().decompress(data, LIMIT)),
    (b"BZh", lambda data: bz2.BZ2Decompressor().decompress(data, LIMIT)),
    (b"\xfd7zXZ\x00", lambda data: lzma.LZMADecompressor(memlimit=2**27).decompress(data, LIMIT)),
)


def from_base64(word: str) -> Iterator[str]:
    """The texts in a base64 word, or in a part of it: to what stands before or after it, it may be glued by `-`, `_` or `/`."""
    whole = list(_of_base64(word))
    yield from whole
    if not whole:
        parts = [part for part in re.split(r"[-_+/]", word.rstrip("=")) if len(part) >= 16]
        yield from (text for part in parts if part != word for text in _of_base64(part))


def from_hexadecimal(word: str) -> Iterator[str]:
    """The texts in an even number of hexadecimal digits, perhaps with blanks or colons between the bytes."""
    yield from readable(bytes.fromhex(word.replace(":", " ")))


def from_base32(word: str) -> Iterator[str]:
    """The texts in a base32 word."""
    body = word.rstrip("=")
    try:
        yield from readable(base64.b32decode(body + "=" * (-len(body) % 8)))
    except binascii.Error:
        return


def readable(data: bytes, layers: int = _LAYERS) -> Iterator[str]:
    """Bytes as text, if that is what they are; else what is compressed or archived in them, else the runs of text among them."""
    if (text := _printable(data)) is not None:
        yield text
        return
    inner = list(_unpacked(data)) if layers else []
    for one in inner:
        yield from readable(one, layers - 1)
    if not inner:
        for form in (data, data.replace(b"\0", b"")) if b"\0" in data else (data,):
            if runs := _RUN.findall(form):
                yield b"\n".join(runs).decode("ascii")


def _of_base64(word: str) -> Iterator[str]:
    body = word.rstrip("=").translate(str.maketrans("-_", "+/"))
    if len(body) % 4 != 1:
        try:
            yield from readable(base64.b64decode(body + "=" * (-len(body) % 4), validate=True))
        except binascii.Error:
            return


def _unpacked(data: bytes) -> Iterator[bytes]:
    if data.startswith(b"PK\x03\x04"):
        yield from _members(data)
    for magic, unpack in _MAGIC:
        if data.startswith(magic):
            try:
                yield unpack(data)
            except (zlib.error, OSError, lzma.LZMAError, EOFError):
                continue


def _members(data: bytes) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            left = LIMIT
            for entry in archive.infolist():
                with archive.open(entry) as file:
                    member = file.read(left)
                left -= len(member)
                yield member
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, zlib.error, EOFError):
        return


def _printable(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if text and all(character.isprintable() or character in "\t\r\n" for character in text) else None
