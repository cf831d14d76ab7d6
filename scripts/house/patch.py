# ruff: noqa
# fmt: off
"""Edits by hand after move.py; each must find its place."""
import re, subprocess
from pathlib import Path
missing = []
def sub(path, *pairs):
    p = Path(path); s = p.read_text()
    for a, b in pairs:
        if a not in s: missing.append((path, a)); continue
        s = s.replace(a, b)
    p.write_text(s)

sub("engine/__init__.py",
    (">>> import engine\n>>> run = engine.fit", ">>> import scant\n>>> run = scant.fit") if ">>> run = engine.fit" in Path("engine/__init__.py").read_text() else (">>> import engine\n", ">>> import scant\n"),
    ("`import engine` stays", "`import scant` stays"), ("module 'engine' has", "module 'scant' has"))
sub("engine/studies/__init__.py", ('f"scant.studies.{name}").ENTRY', 'f"scant.studies.{name}.entry").ENTRY'))
sub("engine/studies/protocol.py", ('f"scant.studies.protocol.{entry(name).name}").Study', 'f"scant.studies.{entry(name).name}.study").Study'))
sub("engine/runs/worker.py", ('f"scant.studies.protocol.{name}"', 'f"scant.studies.{name}.study"'))
s = Path("engine/tables/__init__.py").read_text()
a = s.index("_HOMES = {"); b = s.index("}", a)
Path("engine/tables/__init__.py").write_text('"""Users\' tables: schema, reading, checks, images. Free of torch and cheap to import."""\n')
p = Path("engine/data_sources/package_data.py"); s = p.read_text()
s = s.replace('files("engine").joinpath("data")', 'files("scant").joinpath("data")').replace("Path(__file__).parent.parent / \"data\"", "Path(__file__).parents[2] / \"data\"")
p.write_text(s)
sub("dashboard/study_page/page.py", ('f"scant.dashboard.pages.{name}").views', 'f"scant.dashboard.pages.{name}.page").views'))
sub("dashboard/app.py", ('import_module(f"scant.dashboard.pages.{name}")', 'import_module(f"scant.dashboard.pages.{name}.page")'))
sub("dashboard/export.py", ("import engine\\n", "import scant\\n"))
p = Path("engine/reproduce/runner.py"); s = p.read_text()
s = re.sub(r'name = f"scant\.studies\.protocol\.?\{?study\}?_tables"|name = f"[^"]*_tables"', 'name = f"scant.studies.{study}.reproduce"', s); p.write_text(s)
for f in subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard", "*.py"], text=True).split():
    q = Path(f)
    if not q.exists(): continue
    s = q.read_text(); o = s
    s = s.replace("import_module(f\"scant.dashboard.pages.{study}\").views", "import_module(f\"scant.dashboard.pages.{study}.page\").views")
    s = s.replace("importlib.import_module(f'scant.dashboard.pages.{name}')", "importlib.import_module(f'scant.dashboard.pages.{name}.page')")
    s = s.replace("(Path(__file__).parent, Path(__file__).parent.parent)", "(Path(__file__).parent, Path(__file__).parent.parent)")
    if s != o: q.write_text(s)
sub("tests/conftest.py", ('iter_modules(scant.__path__, "engine.")', 'iter_modules(scant.__path__, "scant.")') )
p = Path("tests/toy/__init__.py"); s = p.read_text()
s = s.replace('sys.modules["scant.studies.toy"] = entry', 'sys.modules["scant.studies.toy.entry"] = entry').replace('sys.modules["scant.studies.protocol.toy"] = _Lazy("scant.studies.protocol.toy")', 'sys.modules["scant.studies.toy.study"] = _Lazy("scant.studies.toy.study")')
p.write_text(s)
# assets: from frame/shell.py
p = Path("dashboard/frame/shell.py"); s = p.read_text()
s = s.replace("here = Path(__file__).parent\n", "here = Path(__file__).parents[1]\n"); p.write_text(s)
# packages
def packages():
    out = []
    for top, name in (("engine", "scant"), ("dashboard", "scant.dashboard")):
        for init in sorted(Path(top).rglob("__init__.py")):
            out.append(".".join([name, *init.parent.parts[1:]]))
    return out
pk = packages() + ["scant.data", "scant.data.features", "scant.data.recordings", "scant.data.results", "scant.data.templates", "scant.dashboard.assets", "scant.dashboard.assets.fonts"]
p = Path("pyproject.toml"); s = p.read_text()
a = s.index("packages = ["); b = s.index("]", a) + 1
lines, line = [], " "
for name in sorted(set(pk)):
    w = f' "{name}",'
    if len(line) + len(w) > 110: lines.append(line); line = " "
    line += w
lines.append(line)
s = s[:a] + "packages = [\n" + "\n".join(lines) + "\n]" + s[b:]
a = s.index("[tool.setuptools.package-dir]"); b = s.index("[tool.setuptools.package-data]")
s = s[:a] + '''[tool.setuptools.package-dir]
scant = "engine"
"scant.dashboard" = "dashboard"
"scant.dashboard.assets" = "assets"
"scant.dashboard.assets.fonts" = "assets/fonts"
"scant.data" = "data"
"scant.data.features" = "data/features"
"scant.data.recordings" = "data/recordings"
"scant.data.results" = "data/results"
"scant.data.templates" = "data/templates"

''' + s[b:]
s = s.replace('name = "scant"\n', 'name = "scant-gp"\n').replace('scant = "engine.cli:app"', 'scant = "scant.dashboard.cli.main:app"')
p.write_text(s)
print("missing", missing)

# --- tests
p = Path("tests/conftest.py"); s = p.read_text()
a = s.index("# Modules that name torch's types"); b = s.index("if \"benchmark\" not in sys.argv")
s = s[:a] + '''# Modules that name torch's types without importing them cannot be checked at run time.
# Nor can `type[Study]`, a protocol, but each study can. The dashboard lies below the engine once installed.
_UNCHECKED = {"scant.runs.worker", "scant.studies.protocol"}
_ENGINE = Path(scant.__path__[0])
_FILES = [path.relative_to(_ENGINE).with_suffix("") for path in _ENGINE.rglob("*.py")]
_MODULES = [
    ".".join(("scant", *path.parts))
    for path in _FILES
    if path.name != "__init__" and path.parts[0] != "dashboard"
]
''' + s[b:]
s = s.replace("from pkgutil import iter_modules\n", "")
p.write_text(s)
sub("tests/engine/studies/test_clamp_tables.py", ("tables.pipes,", "tables.simulate,"))
sub("tests/engine/test_bench.py", ('''    assert set(wanted.split()) == {m for m in MODELS if (folder / f"{m}.py").exists()}''',
  '''    homes = {"bgplvm": "gplvm", "dgplvm": "gplvm", "sclvm": "gplvm", "hgp": "replicated"}
    homes |= {"hmogp_lv": "replicated", "lvmogp": "replicated/hmogp_lv"}
    assert all(list((folder / homes.get(m, "")).glob(f"{m}*")) for m in wanted.split())
    assert set(wanted.split()) <= set(MODELS)'''))
sub("tests/engine/datasets/test_sources.py", ('"import sys, scant.tables as d; [getattr(d, n) for n in d.__all__];"', '"import sys, scant.tables.read, scant.tables.images.archives, scant.data_sources.open as d;"'))
p = Path("tests/engine/test_cli.py"); s = p.read_text(); s = re.sub(r"\bscant\((?=\"|\*|\n)", "command(", s).replace("def scant(", "def command("); p.write_text(s)
p = Path("tests/golden/record.py"); s = p.read_text(); s = re.sub(r"(?<![.\w])scant\(", "printed(", s); p.write_text(s)
p = Path("tests/engine/test_imports.py"); s = p.read_text()
a = s.index("def sources()"); b = s.index("MODULES = sources()")
s = s[:a] + '''def sources() -> dict[str, Path]:
    """Every module of both packages, by its dotted name."""
    names = {}
    for folder, package in (("engine", ("scant",)), ("dashboard", ("scant", "dashboard"))):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = (*package, *path.relative_to(ROOT / folder).with_suffix("").parts)
            names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def web(module: str) -> bool:
    """Whether a module belongs to the dashboard."""
    return module.startswith("scant.dashboard")


''' + s[b:]
s = s.replace('[m for m in MODULES if m.startswith("engine")]', '[m for m in MODULES if not web(m)]').replace('n.startswith("dashboard")', 'web(n)').replace('[m for m in MODULES if m.startswith("dashboard")]', '[m for m in MODULES if web(m)]').replace('m.startswith("dashboard") or', 'web(m) or')
a = s.index("DOOR = {"); b = s.index("\n\n\n", a)
s = s[:a] + '''# The science of a study lies beside its entry and its schemas, which the server reads.
LIGHT = ("entry", "table", "cost")


def scientific(module: str) -> bool:
    """Whether a module may import torch."""
    parts = module.split(".")
    if parts[:2] == ["scant", "studies"] and len(parts) > 3:
        return parts[3] not in LIGHT
    return module.startswith(SCIENCE)
''' + s[b:]
s = s.replace('''    across = {(module, n) for n in IMPORTS[module] if web(n)}
    assert across <= DOOR
''', '''    assert not [name for name in IMPORTS[module] if web(name)]
''')
s = s.replace('assert not [name for name in IMPORTS[module] if name.startswith((*SCIENCE, "torch"))]', 'if not module.startswith("scant.dashboard.cli"):  # which fits in its own process\n        assert not [n for n in IMPORTS[module] if scientific(n) or n.startswith("torch")]')
s = s.replace('web(m) or not m.startswith(SCIENCE)]', 'web(m) or not scientific(m)]')
p.write_text(s)
print("missing", missing)
