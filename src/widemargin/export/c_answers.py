"""The function of C that reads an answer off decision values, whatever their type."""

from __future__ import annotations

from typing import Any

from widemargin.export.blueprint import Classes, Inside, InsideBall, Numbers


def finished(answer: Numbers, kind: str) -> str:
    """Return the statements that make numbers of the values of a row, with ``offsets`` if any."""
    order = _sorting(kind) if answer.ascending else ""
    if answer.offsets is None:
        return order
    return f"""{order}    for (p = 0; p < FUNCTIONS; p++)
        values[p] += offsets[p];
{order}"""


def _sorting(kind: str) -> str:
    """Return the statements that put the values of a row in order."""
    return f"""    for (p = 1; p < FUNCTIONS; p++)
        for (j = p; j > 0 && values[j] < values[j - 1]; j--) {{
            const {kind} larger = values[j - 1];
            values[j - 1] = values[j];
            values[j] = larger;
        }}
"""


def returned_type(answer: Any, kind: str) -> str:
    """Return what the function of predictions returns, for values of a type."""
    if isinstance(answer, Numbers):
        return kind if answer.flat else "void"
    return "int"


def told_classes(answer: Any) -> list[str]:
    """Return a line of the head that tells the classes, if there are any."""
    if not isinstance(answer, Classes):
        return []
    shown = " ".join(str(each) for each in answer.classes)
    # Nothing that a label says may end the comment.
    return [f" * Classes, from number 0 on: {shown.replace('/', '|')}"]


def prediction(
    answer: Any, n_functions: int, name: str, decision: str, *, row: str, kind: str
) -> str:
    """Return the function that reads the answer off the decision values.

    Parameters
    ----------
    answer : Classes, Numbers, Inside or InsideBall
        What is wanted.
    n_functions : int
        Decision values.
    name, decision : str
        Names of this function and of that of the values.
    row, kind : str
        The argument that a row is, and the type of values.
    """
    if isinstance(answer, Numbers) and not answer.flat:
        return f"""
void {name}({row}, {kind} *out)
{{
    {decision}(x, out);
}}
"""
    if isinstance(answer, Numbers):
        returned, text = kind, "    return values[0];"
    elif isinstance(answer, Inside | InsideBall):
        returned, text = "int", "    return values[0] < 0 ? -1 : 1;"
    elif n_functions == 1:
        returned, text = "int", "    return values[0] > 0;"
    elif answer.pairs:
        return _votes(answer, name, decision, row, kind)
    else:
        returned = "int"
        text = """    for (p = 1; p < FUNCTIONS; p++)
        if (values[p] > values[best])
            best = p;
    return best;"""
    extra = "    int best = 0, p;\n" if "best" in text else ""
    return f"""
{returned} {name}({row})
{{
    {kind} values[FUNCTIONS];
{extra}    {decision}(x, values);
{text}
}}
"""


def _votes(answer: Classes, name: str, decision: str, row: str, kind: str) -> str:
    """Return the function in which pairs of classes vote, and margins decide between equals."""
    second = "else" if answer.zero_is_second else "else if (values[p] < 0)"
    margin = ""
    better = "votes[i] > votes[best]"
    declared = "    int votes[CLASSES] = {0};\n"
    if answer.margins_break_ties:
        declared += f"    {kind} margins[CLASSES] = {{0}};\n"
        margin = """
            margins[i] += values[p];
            margins[j] -= values[p];"""
        better += " ||\n            (votes[i] == votes[best] && margins[i] > margins[best])"
    return f"""
int {name}({row})
{{
    {kind} values[FUNCTIONS];
{declared}    int best = 0, i, j, p = 0;
    {decision}(x, values);
    for (i = 0; i < CLASSES; i++)
        for (j = i + 1; j < CLASSES; j++, p++) {{
            if (values[p] > 0)
                votes[i]++;
            {second}
                votes[j]++;{margin}
        }}
    for (i = 1; i < CLASSES; i++)
        if ({better})
            best = i;
    return best;
}}
"""
