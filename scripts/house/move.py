# ruff: noqa
# fmt: off
"""Move modules by table.T and rewrite every import. Run in the root of a clean checkout."""
import ast, re, subprocess, sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent))
from table import T, HOMES

ROOT = Path(".")
def path_of(mod):  # new dotted -> folder path
    parts = mod.split(".")
    assert parts[0] == "scant"
    if parts[1:2] == ["dashboard"]:
        return Path("dashboard", *parts[2:])
    return Path("engine", *parts[1:])

files = [Path(p) for p in subprocess.check_output(["git", "ls-files", "*.py"], text=True).split()]
old_mod = {}
for f in files:
    if f.parts[0] in ("engine", "dashboard"):
        m = ".".join(f.with_suffix("").parts)
        if m.endswith(".__init__"): m = m[:-9]
        old_mod[m] = f
# helpers' new modules: keep their place, with the new root name
for m in old_mod:
    if m not in T:
        parts = m.split(".")
        T[m] = ".".join((["scant"] if parts[0] == "engine" else ["scant", "dashboard"]) + parts[1:])
        print("not in table:", m, "->", T[m])
PACKAGES = {m for m, f in old_mod.items() if f.name == "__init__.py"}

def target(module, name):
    """(new module, new name, is_module) of `from module import name`."""
    full = f"{module}.{name}"
    if full in old_mod and full != "engine.catalog.entry":
        new = T[full]
        parent, _, last = new.rpartition(".")
        return parent, last, True
    if module == "engine.datasets" and name in HOMES:
        return T[f"engine.datasets.{HOMES[name]}"], name, False
    if module in T:
        return T[module], name, False
    raise SystemExit(f"unknown {module} {name}")

keys = sorted(T, key=len, reverse=True)
dotted = re.compile(r"(?<![\w./])(?:engine|dashboard)(?:\.[A-Za-z_]\w*)+")
def sub_dotted(m):
    s = m.group(0)
    parts = s.split(".")
    for k in range(len(parts), 1, -1):
        head = ".".join(parts[:k])
        if head in T:
            return ".".join([T[head], *parts[k:]])
        if parts[:2] == ["engine", "datasets"] and k == 3 and parts[2] in HOMES:
            return ".".join([T["engine.datasets." + HOMES[parts[2]]], *parts[2:]])
    if parts[0] == "engine" and parts[1] in ("fit", "load", "plot", "__version__", "__path__", "__file__"):
        return "scant." + ".".join(parts[1:])
    return s
slashed = re.compile(r"(?<![\w./])(?:engine|dashboard)/[\w/]+\.py")
def sub_slashed(m):
    mod = m.group(0)[:-3].replace("/", ".")
    return str(path_of(T[mod])) + ".py" if mod in T and mod in old_mod else m.group(0)

aliased = []
def rewrite(text, file):
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    edits = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module and node.module.split(".")[0] in ("engine", "dashboard"):
            groups = {}
            for a in node.names:
                mod, name, ismod = target(node.module, a.name)
                asname = a.asname
                if ismod and name != a.name and not asname:
                    asname = a.name; aliased.append((str(file), a.name, f"{mod}.{name}"))
                if asname == name and not ismod: pass
                groups.setdefault(mod, []).append(name + (f" as {asname}" if asname and (asname != name or not ismod) else ""))
            indent = " " * node.col_offset
            tail = lines[node.end_lineno - 1][node.end_col_offset:]
            new = "".join(f"{indent}from {m} import {', '.join(n)}\n" for m, n in groups.items())
            if "#" in tail: new = new[:-1] + "  " + tail.strip() + "\n"
            edits.append((node.lineno - 1, node.end_lineno, new))
        elif isinstance(node, ast.Import) and any(a.name.split(".")[0] in ("engine", "dashboard") for a in node.names):
            indent = " " * node.col_offset
            new = ""
            for a in node.names:
                n = T.get(a.name, a.name)
                new += f"{indent}import {n}" + (f" as {a.asname}" if a.asname else "") + "\n"
            edits.append((node.lineno - 1, node.end_lineno, new))
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {a.arg for n in ast.walk(tree) if isinstance(n, ast.arguments) for a in n.args + n.kwonlyargs}
    for n in ast.walk(tree):
        if isinstance(n, (ast.Import, ast.ImportFrom)):
            used |= {(a.asname or a.name) for a in n.names}
        if isinstance(n, (ast.FunctionDef, ast.ClassDef)):
            used.add(n.name)
    rename = {}
    for f_, old, new in [a for a in aliased if a[0] == str(file)]:
        last = new.rpartition(".")[2]
        if last not in used and last not in rename.values() and last not in ("model", "table", "study", "data", "report", "page", "models", "entry", "baselines", "open"):
            rename[old] = last
    for start, end, new in sorted(edits, reverse=True):
        for old, last in rename.items():
            new = re.sub(rf"\b{last} as {old}\b", last, new)
        lines[start:end] = [new]
    out = "".join(lines)
    for old, last in rename.items():
        out = re.sub(rf"(?<![\w.\"'/]){old}(?=[.,)\]])", last, out)
    for x in [a for a in aliased if a[0] == str(file) and a[1] in rename]:
        aliased.remove(x)
    out = dotted.sub(sub_dotted, out)
    return slashed.sub(sub_slashed, out)

new_texts = {}
for f in files:
    text = f.read_text()
    new_texts[f] = rewrite(text, f)

moved = {}
for m, f in old_mod.items():
    if f.name == "__init__.py" and m in ("engine.studies", "engine.datasets", "engine.catalog"):
        new = {"engine.studies": Path("engine/studies/protocol.py"), "engine.catalog": Path("engine/studies/__init__.py"), "engine.datasets": Path("engine/tables/__init__.py")}[m]
    elif f.name == "__init__.py":
        new = path_of(T[m]) / "__init__.py"
    else:
        new = path_of(T[m]).with_suffix(".py")
    moved[f] = new
targets = list(moved.values())
assert len(set(targets)) == len(targets), [t for t in targets if targets.count(t) > 1]
# through temporary names, for old and new paths overlap
tmp = {}
for i, (f, new) in enumerate(moved.items()):
    if f != new:
        t = Path(f".move-{i}.py"); subprocess.check_call(["git", "mv", str(f), str(t)]); tmp[t] = new
for t, new in tmp.items():
    new.parent.mkdir(parents=True, exist_ok=True)
    subprocess.check_call(["git", "mv", str(t), str(new)])
for f, text in new_texts.items():
    (moved.get(f, f)).write_text(text)
for new in {p.parent for p in targets}:
    p = new
    while p.parts and p.parts[0] in ("engine", "dashboard"):
        init = p / "__init__.py"
        if not init.exists(): init.write_text('""""""\n'); print("init", p)
        p = p.parent
for md in ("README.md", "CONTRIBUTING.md", "pyproject.toml", "CHANGELOG.md"):
    q = Path(md); t = q.read_text(); t = slashed.sub(sub_slashed, dotted.sub(sub_dotted, t)); q.write_text(t)
print("aliased", len(aliased))
for a in aliased: print("  ", *a)
