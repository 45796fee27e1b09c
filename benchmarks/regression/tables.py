"""Errors, times and intervals, a set a line; what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.harness.datasets import REGRESSION, split_name
from benchmarks.harness.records import Record, finished, of_part, text_or_status
from benchmarks.harness.report import MISSING, Table, number
from benchmarks.harness.targets import Line, asked_table, enough, judged, line
from benchmarks.regression.machines import INTELEX, MACHINES, OURS, SEARCH, SVR

FIT = "fit"
LIMITED = "limited"
PIECES = "pieces"
SEARCHED = "search"
COMPARED = (FIT, PIECES, SEARCHED, LIMITED)
INTERVALS = "intervals"
LARGE = ("kin40k", "protein", "keggundirected")
# Seconds a process may take before its task begins.
START = 5.0
NOMINAL = 90.0

Results = dict[str, dict[str, Any]]


def results_of(records: Sequence[Record]) -> dict[str, Results]:
    """What each machine did on each set, also in a process that ran out of time later."""
    found: dict[str, Results] = {}
    for record in records:
        if record["part"] in COMPARED:
            found.setdefault(record["dataset"], {}).update(record.get("machines", {}))
    return found


def cell(records: Sequence[Record], dataset: str, name: str, key: str, digits: int) -> str:
    """A figure of a machine on a set, or why there is none."""
    found = results_of(records).get(dataset, {}).get(name, {})
    value = found.get(key)
    tried = [one for one in records if one["dataset"] == dataset and name in one.get("names", ())]
    failed = [one for one in tried if one["status"] != "ok"]
    text = text_or_status(failed[0] if failed else None, value, digits)
    sampled = "sampled_rows" in found and value is not None
    return f"{text} ({found['sampled_rows']:,} rows)" if sampled else text


def machine_table(records: Sequence[Record], key: str, title: str, digits: int) -> Table:
    mine = [record for record in records if record["part"] in COMPARED]
    names = [name for name in MACHINES if any(name in one.get("names", ()) for one in mine)]
    rows = []
    for dataset in dict.fromkeys(record["dataset"] for record in mine):
        known = [one for one in mine if one["dataset"] == dataset and "n_train" in one]
        size = f"{known[0]['n_train']:,} × {known[0]['n_features']}" if known else MISSING
        rows.append([dataset, size, *(cell(mine, dataset, name, key, digits) for name in names)])
    return Table(title, ["set", "training rows × columns", *names], rows)


def choice_table(records: Sequence[Record]) -> Table:
    """What our machines took, and which engine."""
    rows = [
        [
            f"{dataset}, {name}",
            ", ".join(
                f"{key} = {value:.3g}" if isinstance(value, float) else f"{key} = {value}"
                for key, value in one["chosen"].items()
            ),
            one["engine"],
            number(one["n_vectors"], 0),
            number(one["validation"], 4),
        ]
        for dataset, found in results_of(records).items()
        for name in (*OURS, SEARCH)
        if (one := found.get(name))
    ]
    header = ["set and loss", "chosen", "engine", "vectors", "validation RMSE (search: R²)"]
    return Table("What was chosen", header, rows)


def interval_table(records: Sequence[Record]) -> Table:
    rows = [
        [
            record["dataset"],
            *(
                text_or_status(record, record.get(key), digits)
                for key, digits in (
                    ("n_train", 0),
                    ("n_test", 0),
                    ("C", 2),
                    ("coverage", 1),
                    ("width", 2),
                )
            ),
            text_or_status(record, record.get("fit_seconds"), 2),
        ]
        for record in of_part(records, INTERVALS)
    ]
    header = [
        "set",
        "training rows",
        "test rows",
        "C",
        "coverage, %",
        "mean width, sd(y)",
        "search and fit, s",
    ]
    return Table("The interval from the 5 % to the 95 % quantile", header, rows)


# ---------------------------------------------------------------- what was asked


def best_of_ours(found: Results) -> dict[str, Any] | None:
    """The one of our losses that was better on the held-out training rows."""
    ours = [found[name] for name in OURS if name in found]
    return min(ours, key=lambda one: one["validation"]) if ours else None


def seconds_of_svr(records: Sequence[Record], dataset: str) -> tuple[float | None, bool]:
    """The fit time of SVR; or at least how long it took, and True."""
    found = results_of(records).get(dataset, {}).get(SVR)
    if found and "sampled_rows" not in found:
        return found["fit_seconds"], False
    least = [found["fit_seconds"]] if found else []
    for record in records:
        late = record["status"] == "timeout" and "before_seconds" in record
        if record["dataset"] == dataset and late and SVR in record.get("names", ()):
            waited = record["limit"] - record["load_seconds"] - record["before_seconds"] - START
            least.append(max(waited, 0.0))
    return (max(least), True) if least else (None, False)


def speed_line(records: Sequence[Record], name: str) -> Line:
    """Ours beside SVR on a large set; a bound where SVR was stopped."""
    dataset = split_name(name, 0)
    ours = best_of_ours(results_of(records).get(dataset, {}))
    theirs, stopped = seconds_of_svr(records, dataset)
    asked = f"2. {name}: at least 10 times faster than SVR"
    if ours is None or theirs is None:
        return line(asked, MISSING, None)
    gain = theirs / ours["fit_seconds"]
    sign = "more than " if stopped else ""
    return line(asked, sign + number(gain, 1, "×"), None if stopped and gain < 10 else gain >= 10)


def svr_of(found: Results) -> dict[str, Any] | None:
    """SVR on all rows, by scikit-learn or by intelex, whose machine is the same; or on a sample."""
    whole = (found[name] for name in (SVR, INTELEX) if name in found)
    return next((one for one in whole if "sampled_rows" not in one), found.get(SVR))


def error_line(records: Sequence[Record]) -> Line:
    results = results_of(records)
    met, missed, sampled = [], [], []
    for name in REGRESSION:
        found = results.get(split_name(name, 0), {})
        ours, theirs = best_of_ours(found), svr_of(found)
        if ours is not None and theirs is not None:
            difference = ours["rmse"] - theirs["rmse"]
            (met if difference <= 0 else missed).append(f"{name} {difference:+.4f}")
            sampled += [name] if "sampled_rows" in theirs else []
    unknown = len(REGRESSION) - len(met) - len(missed)
    said = f"{len(met)} of {len(REGRESSION)}; {unknown} not measured"
    said += f"; above: {'; '.join(missed)}" if missed else ""
    said += f"; SVR on a sample of the rows: {', '.join(sampled)}" if sampled else ""
    return line("2. RMSE at or below SVR's on 8 of 10", said, enough(len(met), unknown, 8))


def small_line(records: Sequence[Record]) -> Line:
    slower, seen = [], 0
    small = [name for name in REGRESSION if name not in LARGE]
    for name in small:
        found = results_of(records).get(split_name(name, 0), {})
        ours = best_of_ours(found)
        if ours is None or SVR not in found:
            continue
        seen += 1
        over = ours["fit_seconds"] / found[SVR]["fit_seconds"]
        slower += [f"{name} {over:.2f}×"] if over > 1 else []
    asked = "2. never slower than SVR on the seven smaller sets"
    said = f"slower: {'; '.join(slower)}" if slower else f"on none of {seen}"
    return line(asked, said, judged(not slower, seen == len(small)))


def coverage_line(records: Sequence[Record]) -> Line:
    first = {split_name(name, 0) for name in REGRESSION}
    done = [one for one in finished(of_part(records, INTERVALS)) if one["dataset"] in first]
    wrong = [
        f"{one['dataset']} {one['coverage']:.1f}"
        for one in done
        if abs(one["coverage"] - NOMINAL) > 2.0
    ]
    said = f"{len(done) - len(wrong)} of {len(first)}" + (
        f"; not: {'; '.join(wrong)}" * bool(wrong)
    )
    met = judged(not wrong, len(done) == len(first))
    return line("3. coverage of the 90 % interval within 2 points on all", said, met)


def targets(records: Sequence[Record]) -> Table:
    lines = [error_line(records), *(speed_line(records, name) for name in LARGE)]
    lines += [small_line(records), coverage_line(records)]
    note = "Ours is the loss that was better on the held-out training rows."
    return asked_table(lines, [note])
