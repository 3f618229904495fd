"""`/errors` on the admin address: the venue's errors as a page, which the live page's advice links to.

docs/errors.md has the lines of the default venue.
"""

from html import escape

from sealgate.core.venues.replies import ErrorRow, Judge

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sealgate: errors of the exchange</title>
<link rel="icon" href="page/icon.svg">
<link rel="stylesheet" href="page/page.css">
<main>
<h1>Errors of the exchange</h1>
<p><a href="./">Back to the live page</a></p>
<div class="card wide"><table>
<thead><tr><th>kind</th><th>status</th><th>its words</th><th>look at</th><th>what to do</th></tr></thead>
<tbody>
%s
</tbody></table></div>
</main>
</html>
"""


def errors_page(judge: Judge) -> str:
    """Return the page."""
    return _PAGE % "\n".join(_line(kind, row) for kind, row in judge.errors().items())


def _line(kind: str, row: ErrorRow) -> str:
    statuses = ", ".join(map(str, row.statuses)) or "-"
    words = " / ".join(row.words) or "-"
    cells = (statuses, words, row.verdict.whose.value, row.verdict.advice)
    rest = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr id="{kind}"><td><code>{kind}</code></td>{rest}</tr>'
