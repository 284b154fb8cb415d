"""Files of the demo that are no text: a picture and a PDF, made when they are needed."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping

_WIDTH, _HEIGHT = 320, 180
_PAPER, _FRAME, _ON, _LINE = b"\xf7\xf8\xfa", b"\x33\x44\x66", b"\x2e\x8b\x57", b"\xc0\xc8\xd4"

_REPORT = (
    "Penetration test of the customer portal, summary",
    "Harbourlight Robotics, 8 to 19 June 2026",
    "",
    "Scope: sign-in, fleet positions, exports, and the interface for partners.",
    "Findings: none critical or high, two medium, three low.",
    "M1  Exports could be read by their address for an hour after signing out.",
    "M2  The interface for partners told which customer numbers exist.",
    "Both were closed on 17 June and tested again on 19 June: not found any more.",
)


def _setting() -> bytes:
    """A page of settings, in which the second factor is on."""
    rows = bytearray()
    for y in range(_HEIGHT):
        rows += b"\0"
        for x in range(_WIDTH):
            is_frame = y < 22 or x in {0, _WIDTH - 1} or y == _HEIGHT - 1
            is_switch = 250 <= x < 290 and y % 40 in range(20, 34) and y > 40
            is_text = 20 <= x < 60 + 37 * (y // 40) and y % 40 in range(24, 30) and y > 40
            rows += _FRAME if is_frame else _ON if is_switch else _LINE if is_text else _PAPER
    head = struct.pack(">IIBBBBB", _WIDTH, _HEIGHT, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(rows), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )


def _report() -> bytes:
    """The report of a test, on one page."""
    lines = "".join(f"({line.replace('(', '').replace(')', '')}) Tj T*\n" for line in _REPORT)
    text = f"BT /F1 11 Tf 16 TL 60 770 Td\n{lines}ET".encode("ascii")
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources <</Font<</F1 5 0 R>>>> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    content, places = bytearray(b"%PDF-1.4\n"), []
    for number, one in enumerate(objects, 1):
        places.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(content))
    return bytes(content) + b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table) + end


MADE: Mapping[str, Callable[[], bytes]] = {
    "second-factor-setting.png": _setting,
    "penetration-test-portal-2026.pdf": _report,
}
