"""Table of an upload's first rows, with a choice of role per column and questions above it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import param
from panel.custom import JSComponent

from scant.tables.choices import OUT
from scant.tables.column_matching import schema_names
from scant.tables.levels import names
from scant.tables.limits import beside
from scant.tables.schema import ColumnPreview, Preview, Question, TableSchema
from scant_dashboard.engine_text import translated
from scant_dashboard.template import component, style
from scant_dashboard.translate import as_number, later, ntr, tr

OFFERED = 200  # columns shown at once; the others by searching
ERRORS_OFFERED = 60  # features with a role "error of"; each head lists all roles
AS_IS = "="  # the role of a column that keeps its name: a feature
VIEW = "view:"  # prefix of the role that assigns a feature to a view
AGAIN = "_column"  # suffix of a feature whose name has another meaning in the study
KINDS = {"date": later("dates"), "text": later("text")}


class ColumnTable(JSComponent):
    """A table with a choice of role in each column's head, and questions above it.

    Args:
        assign: Called with column names and the role chosen for them: a name of the schema,
            `AS_IS`, `OUT`, or `VIEW` followed by a name.
        answer: Called with a question and its answer.
    """

    columns = param.List(default=[])
    rows = param.List(default=[])
    options = param.List(default=[])
    questions = param.List(default=[])
    searched = param.Boolean(default=False)
    viewed = param.Boolean(default=False)
    more = param.String("")
    version = param.Integer(0)  # incremented after the others have changed; triggers drawing

    _esm = component("column_table")

    def __init__(
        self,
        assign: Callable[[Sequence[str], str], None],
        answer: Callable[[Question, Any], None] = lambda question, answer: None,
    ) -> None:
        super().__init__(
            stylesheets=[style("text"), style("column_table")],
            sizing_mode="stretch_width",
            margin=0,
            visible=False,
        )
        self._assign, self._answer = assign, answer
        self._find = ""
        self._table: tuple[Preview, Mapping[str, str], TableSchema] | None = None
        self._questions: Sequence[tuple[Question, Any]] = ()

    def take(
        self,
        preview: Preview,
        mapping: Mapping[str, str],
        schema: TableSchema,
        questions: Sequence[tuple[Question, Any]] = (),
    ) -> None:
        """Show a table with the roles of its columns, and questions with their current answers."""
        self._table, self._questions = (preview, mapping, schema), questions
        visible = self._visible_columns()
        offered = [*options(schema), *special([*mapping.values()], schema, preview.features)]
        self.param.update(
            columns=[_head(preview.columns[i], mapping, schema, offered, preview) for i in visible],
            rows=[[row[i] for i in visible] for row in preview.head],
            options=offered,
            questions=[_question(question, answer) for question, answer in questions],
            searched=len(preview.names) > OFFERED or schema.views,
            viewed=schema.views,
            more=_more(len(visible), len(preview.names), schema.views),
        )
        self.param.update(version=self.version + 1, visible=bool(preview.names))

    def _visible_columns(self) -> list[int]:
        """Return indices of the matches of a search, or of the first columns and all with text."""
        if self._table is None:
            return []
        preview, mapping, schema = self._table
        if self._find:
            return [i for i, n in enumerate(preview.names) if self._find in n.lower()][:OFFERED]
        own = schema_names(schema)
        return [
            i
            for i, column in enumerate(preview.columns)
            if i < OFFERED or column.kind == "text" or mapping.get(column.name) in own
        ]

    def _handle_msg(self, data: Any) -> None:
        if not isinstance(data, dict) or self._table is None:
            return
        preview, mapping, schema = self._table
        if "find" in data:
            self._find = str(data["find"]).strip().lower()
            self.take(preview, mapping, schema, self._questions)
        elif "out" in data and self._find:
            self._assign(self._matches(preview), OUT)
        elif view := str(data.get("view", "")).strip(" ."):
            own = schema_names(schema)
            free = [n for n in self._matches(preview) if mapping.get(n, n) not in own]
            self._assign(free, f"{VIEW}{view.replace('.', '_')}")
        elif data.get("question") in range(len(self._questions)):
            question, _ = self._questions[data["question"]]
            if data.get("answer") in range(len(question.options)):
                self._answer(question, question.options[data["answer"]][0])
        elif data.get("column") in preview.names:
            self._assign([str(data["column"])], str(data.get("role", OUT)))

    def _matches(self, preview: Preview) -> list[str]:
        """Return the names of the columns that match the search."""
        return [n for n in preview.names if self._find and self._find in n.lower()]


def _more(n_visible: int, n_columns: int, views: bool) -> str:
    """Describe which columns are shown."""
    shown = tr("{shown:,} of {n:,} columns are shown.", shown=n_visible, n=n_columns)
    return f"{shown} {tr('A column named view.feature belongs to that view.')}" if views else shown


def options(schema: TableSchema) -> list[dict[str, str]]:
    """Return the roles that any column may have."""
    one = len(schema.targets) == 1
    labels = {
        c.name: tr("to be learned") if one else tr("{column} (target)", column=c.name)
        for c in schema.columns
        if c.target
    }
    labels |= {c.name: _error_of(c.name[:-4]) for c in schema.columns if c.name[-4:] == "_err"}
    named = [
        {"value": c.name, "label": labels.get(c.name, c.name), "title": tr(c.doc)}
        for c in schema.columns
    ]
    feature = {"value": AS_IS, "label": tr("learn from it") if schema.features else tr("as it is")}
    return [feature, {"value": OUT, "label": tr("leave out")}, *named]


def _error_of(column: str) -> str:
    return tr("error of {column}", column=column)


def special(
    roles: Sequence[str], schema: TableSchema, features: Sequence[str] = ()
) -> list[dict[str, str]]:
    """Return the roles that depend on the table: errors of features, bounds of boxes, views.

    Args:
        roles: Roles of the table's columns.
        schema: The study's schema.
        features: Columns to learn from, of which others may hold the errors.
    """
    made: dict[str, str] = {}
    if schema.errors:
        if len(features) <= ERRORS_OFFERED:
            made |= {f"{f}_err": _error_of(f) for f in features}
        made |= {r: _error_of(r[:-4]) for r in roles if r.endswith("_err")}
        limits = [r for r in roles if beside(r, roles) and r not in made]
        made |= {r: tr("limit of {column}", column=r[:-4]) for r in limits}
    if schema.boxes:
        inputs = [r[:-3] for r in roles if r.endswith(("_lo", "_hi"))]
        unused = "x" if "x" not in inputs else f"x{len({*inputs}) + 1}"
        for base in dict.fromkeys([*inputs, unused]):
            made[f"{base}_lo"] = tr("{column}: lower bound", column=base)
            made[f"{base}_hi"] = tr("{column}: upper bound", column=base)
    if schema.views:
        views = dict.fromkeys(v for role in roles if (v := view_of(role, schema)))
        made |= {f"{VIEW}{view}": tr("view: {view}", view=view) for view in views}
    return [{"value": role, "label": label} for role, label in made.items()]


def view_of(role: str, schema: TableSchema) -> str:
    """Return the view of a column named "view.feature"; "" for none, as for "pm2.5"."""
    view, _, feature = role.partition(".")
    return view if schema.views and view and feature and not feature.isdigit() else ""


def _question(question: Question, current: Any) -> dict[str, Any]:
    """Describe a question for the browser; `taken` is -1 if the answer is not an option."""
    answers = [answer for answer, _ in question.options]
    return {
        "text": translated(question.text),
        "options": [translated(label) for _, label in question.options[:OFFERED]],
        "taken": answers.index(current) if current in answers else -1,
    }


def _head(
    column: ColumnPreview,
    mapping: Mapping[str, str],
    schema: TableSchema,
    offered: Sequence[Mapping[str, str]],
    preview: Preview,
) -> dict[str, Any]:
    """Describe a column's head: its name, content and role."""
    name, own = column.name, schema_names(schema)
    role = mapping.get(name, name)
    if view := view_of(role, schema):
        role = f"{VIEW}{view}"
    values = {option["value"] for option in offered}
    if role in (name, f"{name}{AGAIN}") and role not in own | values:
        # Text and constants are no features.
        learned = role in preview.features or role in preview.levels
        role = AS_IS if learned or not schema.features else OUT
    made = names(name, preview.levels.get(mapping.get(name, name), ()))
    inputs = f" → {ntr('{n} input', '{n} inputs', len(made))}" if made else ""
    what, number = f"{holds(column)}{inputs}", column.kind == "number"
    head = {"name": name, "holds": what, "number": number, "role": role}
    if role not in values:
        head["own"] = [{"value": role, "label": tr("as {role}", role=role)}]
    return head


def holds(column: ColumnPreview) -> str:
    """Describe the content of a column in a few words."""
    if column.kind == "empty":
        return tr("empty")
    if column.kind == "number":
        low, high = (as_number(f"{end:.4g}") for end in (column.minimum, column.maximum))
        content = [tr("{low} to {high}", low=low, high=high)]
    else:
        content = [tr(KINDS[column.kind]), ntr("{n:,} value", "{n:,} values", column.levels)]
    empty = [tr("{n:,} empty", n=column.missing)] if column.missing else []
    return ", ".join([*content, *empty])
