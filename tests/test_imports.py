"""The house: imports go down only, file names are unique, private names stay in their module."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import widemargin

HOUSE = Path(widemargin.__file__).parent

# Folders and root modules, the lowest level first. Each may import what stands on a lower level;
# those of one level do not know each other. `widemargin` is the package itself, `__init__.py`.
LEVELS = (
    ("arrays", "certificate", "threads"),
    ("factors", "folds", "kernels", "loop", "rows"),
    ("device",),
    ("expansion", "intervals", "kernel_between", "problem", "qp"),
    ("balls", "scatter", "span"),
    ("cells", "directions", "pairs"),
    ("metric", "places"),
    ("base",),
    ("discriminant", "outliers", "regression", "sparse", "svm"),
    ("export", "model_files", "plot", "reporting"),
    ("widemargin",),
    ("cli",),
)

# Functions that import a module which is named by a text.
IMPORTERS = ("Compiled", "import_module")


def files_of(house):
    """Return the files of a package by the names of their modules."""
    found = {}
    for file in sorted(house.rglob("*.py")):
        parts = file.relative_to(house.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def room_of(module):
    """Return the folder or root module that a module belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def imports_of(module, files):
    """Yield (line, module, name, local name) of each import from the same package.

    The name is None where a whole module is imported.
    """
    package = module.split(".")[0]
    for node in ast.walk(ast.parse(files[module].read_text(encoding="utf-8"))):
        for found, name, local in _imported(node, module, files):
            if found.split(".")[0] == package:
                yield node.lineno, found, name, local


def _imported(node, module, files):
    if isinstance(node, ast.Import):
        for each in node.names:
            yield each.name, None, each.asname or each.name
    elif isinstance(node, ast.ImportFrom):
        source = _source(node, module, files)
        for each in node.names:
            whole = f"{source}.{each.name}"
            local = each.asname or each.name
            yield (whole, None, local) if whole in files else (source, each.name, local)
    elif isinstance(node, ast.Call) and node.args:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func
        called = called.id if isinstance(called, ast.Name) else called
        text = node.args[0]
        if called in IMPORTERS and isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield text.value, None, text.value


def _source(node, module, files):
    """Return the module that a `from` names, also where it is relative."""
    if not node.level:
        return node.module
    up = node.level - (files[module].name == "__init__.py")
    parts = module.split(".")
    return ".".join([*parts[: len(parts) - up], *([node.module] if node.module else [])])


def wrong_directions(house, levels=LEVELS):
    """Return the imports that go up or sideways, and the rooms that have no level."""
    files = files_of(house)
    level = {room: height for height, rooms in enumerate(levels) for room in rooms}
    wrong = {f"{room} has no level" for room in map(room_of, files) if room not in level}
    for module in files:
        here = room_of(module)
        for line, other, _, _ in imports_of(module, files):
            there = room_of(other)
            if not {here, there} <= level.keys() or here == there:
                continue
            if level[there] >= level[here]:
                way = "up" if level[there] > level[here] else "sideways"
                wrong.add(f"{module}:{line} imports {other}, {way}")
    return sorted(wrong)


def repeated_file_names(house):
    """Return the names that several files have, `__init__.py` aside."""
    count = Counter(file.name for file in files_of(house).values())
    return sorted(name for name, many in count.items() if many > 1 and name != "__init__.py")


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


def foreign_private_names(house):
    """Return uses of names with a leading underscore that another module defines."""
    files = files_of(house)
    wrong = []
    for module, file in files.items():
        local_names = set()
        for line, other, name, local in imports_of(module, files):
            names = (name or other).split(".")
            if any(map(is_private, names)):
                wrong.append(f"{module}:{line} imports {other}{'.' + name if name else ''}")
            local_names.add(local)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                owner = ast.unparse(node.value)
                if owner in local_names:
                    wrong.append(f"{module}:{node.lineno} uses {owner}.{node.attr}")
    return sorted(wrong)


def test_imports_between_rooms_go_down():
    assert wrong_directions(HOUSE) == []


def test_no_file_name_occurs_twice():
    assert repeated_file_names(HOUSE) == []


def test_a_private_name_is_used_in_its_own_module_only():
    assert foreign_private_names(HOUSE) == []


def test_the_table_names_rooms_that_exist_each_once():
    named = [room for rooms in LEVELS for room in rooms]
    assert sorted(named) == sorted(set(map(room_of, files_of(HOUSE))))


# The checks themselves, on a made-up package.

SOUND = {
    "__init__.py": "from house.kitchen import cook",
    "numbers.py": "import math",
    "cellar/__init__.py": "from .wine import Wine",
    "cellar/wine.py": "from house.numbers import count",
    "pantry/__init__.py": "",
    "kitchen/__init__.py": "from house.cellar import Wine",
    "kitchen/stove.py": "from house import cellar, numbers\nfrom . import __doc__\ncellar.wine",
}
SOUND_LEVELS = (("numbers",), ("cellar", "pantry"), ("kitchen",), ("house",))


def _built(folder, changed):
    for name, text in (SOUND | changed).items():
        file = folder / "house" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder / "house"


def test_a_sound_house_passes_all_checks(tmp_path):
    house = _built(tmp_path, {})
    assert wrong_directions(house, SOUND_LEVELS) == []
    assert repeated_file_names(house) == []
    assert foreign_private_names(house) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("from house.kitchen import cook", "house.cellar.wine:1 imports house.kitchen, up"),
        ("import house.kitchen.stove", "house.cellar.wine:1 imports house.kitchen.stove, up"),
        ("import house.kitchen as k", "house.cellar.wine:1 imports house.kitchen, up"),
        ("from house import pantry", "house.cellar.wine:1 imports house.pantry, sideways"),
        ("from ..kitchen import cook", "house.cellar.wine:1 imports house.kitchen, up"),
        ("from .. import kitchen", "house.cellar.wine:1 imports house.kitchen, up"),
        ("from house import cook", "house.cellar.wine:1 imports house, up"),
        (
            "def drink():\n    from house.kitchen import cook\n    return cook",
            "house.cellar.wine:2 imports house.kitchen, up",
        ),
        (
            "loops = Compiled('house.kitchen.stove')",
            "house.cellar.wine:1 imports house.kitchen.stove, up",
        ),
        (
            "importlib.import_module('house.pantry')",
            "house.cellar.wine:1 imports house.pantry, sideways",
        ),
    ],
)
def test_an_import_up_or_sideways_is_found(tmp_path, text, said):
    house = _built(tmp_path, {"cellar/wine.py": text})
    assert wrong_directions(house, SOUND_LEVELS) == [said]


def test_a_relative_import_up_in_the_file_of_a_folder_is_found(tmp_path):
    house = _built(tmp_path, {"cellar/__init__.py": "from ..kitchen import cook"})
    assert wrong_directions(house, SOUND_LEVELS) == ["house.cellar:1 imports house.kitchen, up"]


def test_a_room_without_a_level_is_found(tmp_path):
    house = _built(tmp_path, {"attic/__init__.py": "", "shed.py": ""})
    assert wrong_directions(house, SOUND_LEVELS) == ["attic has no level", "shed has no level"]


def test_a_repeated_file_name_is_found(tmp_path):
    house = _built(tmp_path, {"pantry/wine.py": ""})
    assert repeated_file_names(house) == ["wine.py"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("from house.cellar.wine import _cork", "imports house.cellar.wine._cork"),
        ("from house.cellar.wine import _cork as cork", "imports house.cellar.wine._cork"),
        ("from house.cellar import _racks", "imports house.cellar._racks"),
        ("import house.cellar._racks", "imports house.cellar._racks"),
        ("from house.cellar import wine; wine._cork", "uses wine._cork"),
        ("from house.cellar import wine as red; red._cork()", "uses red._cork"),
        ("import house.cellar.wine; house.cellar.wine._cork", "uses house.cellar.wine._cork"),
        ("from house.cellar import Wine; Wine._cork", "uses Wine._cork"),
    ],
)
def test_a_private_name_of_another_module_is_found(tmp_path, text, said):
    house = _built(tmp_path, {"kitchen/stove.py": text, "cellar/_racks.py": ""})
    assert foreign_private_names(house) == [f"house.kitchen.stove:1 {said}"]
