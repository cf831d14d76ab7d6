# ruff: noqa
# fmt: off
"""Rename classes and functions by (module, name), following imports and re-exports. Tokens only; docstrings by backticks."""
import ast, io, re, subprocess, tokenize
from pathlib import Path
S = {}
def put(mod, names):
    for n in names.split():
        a, b = n.split("="); S[(mod, a)] = b
put("dashboard.history", "History=RunState Trace=TraceBuffer")
put("dashboard.shell", "Visit=SessionContext Content=PageContent sorry=error_page")
put("dashboard.pages.place", "Later=DeferredRenderer fold=collapsible")
put("dashboard.plots.late", "Late=LazyView Near=ViewportSentinel")
put("dashboard.pages.growing", "Waiting=OnDemandView Growing=SliderCurve")
put("dashboard.pages.withheld", "Withheld=HiddenUntilRevealed")
put("dashboard.pages.alternatives", "Other=Variant")
put("dashboard.plots.base", "Fed=DataView Shown=PlotView")
put("dashboard.pages.events_row", "OneRow=RowExplanation")
put("dashboard.pages.genes_hide", "Hidden=HeldOutReplica")
put("dashboard.controls.pad", "Pad=DrawingCanvas")
put("dashboard.controls.keep", "Keep=ExportPanel")
put("dashboard.controls.trouble", "Trouble=HealthBanner")
put("dashboard.controls.reveal", "Reveal=GuessFirst")
put("dashboard.controls.labelling", "Desk=LabelingWidget")
put("dashboard.pages.clamp_label", "Desk=LabelingView")
put("dashboard.pages.clamp_session", "Session=LabelingSession")
put("engine.reproducing", "Gathered=ScoreTable")
put("engine.runs.attempts", "Attempts=Dispatcher")
put("engine.runs.sharing", "Shared=LeaseManager")
put("engine.runs.live", "Live=ActiveRun")
put("engine.runs.limited", "Limited=LimitedDispatcher")
put("engine.runs.desk", "Desk=WorkerClient")
put("engine.worker", "Workplace=ScantWorkerPlugin Outbox=EventBatcher COLD=NOT_CACHED")
put("engine.store.run_shelf", "RunShelf=RunRepository")
put("engine.store.upload_shelf", "UploadShelf=UploadRepository")
put("engine.store.claim_shelf", "ClaimShelf=ClaimRepository")
put("engine.store.recording_shelf", "RecordingShelf=RecordingRepository")
put("engine.store.limit_shelf", "LimitShelf=LimitRepository")
put("engine.store.schema", "lasting=durable_transaction alone=exclusive")
put("engine.datasets.rules", "Findings=Diagnostics")
put("engine.shipped", "shipped=package_file")
put("engine.kernels.replica", "alike=same_group")
put("engine.models.optimiser_state", "remembered=to_tensors recall=from_tensors part=with_prefix")
put("engine.models.jitter", "noted=collect_numerical_warnings")
put("engine.models.gpz_basis", "start_centres=kmeans_centres")
put("engine.models.dfgp_training", "falling=cosine_decay")
put("engine.models.bgplvm_inference", "Placed=LatentPosterior climb=maximise Climbable=RowObjective Slopes=Gradients")
put("engine.models.bgplvm_bound", "Observing=TargetModel")
put("engine.models.hmogp_lv_layout", "Layout=ReplicaBatch")
put("engine.models.gpz_inputs", "Fitted=PosteriorState")
put("engine.models.laplace_links", "At=LinkDerivatives")
put("engine.models.mtgpa", "Agreement=PredictiveCheck")
put("engine.models.mtgpa_baselines", "OnCentroids=CentroidGP Dependent=DependentGP")
put("engine.studies.mitosis_models", "Chances=CalibratedClassifier tempered=temperature_scaled")
put("engine.studies.clamp_models", "Session=ActiveLearner")
put("engine.datasets.nuclei", "Cells=LabelledImages")
put("engine.datasets.sources", "make_ahead=prefetch_demo")
METHODS = {  # distinctive attribute names, everywhere
 "_off": "_in_store_thread", "_aside": "_spawn", "_asides": "_spawned", "in_hand": "assigned", "_in_hand": "_assigned",
 "cares_for": "owns", "_obey": "_apply_requests", "_part_with": "_release", "make_ahead": "prefetch_demo",
 "_make_ahead": "_prefetch_demo", "_made_ahead": "_prefetched", "poke": "schedule_update", "retire": "expire_if_idle",
 "take_over": "acquire_orphans",
}
files = [Path(p) for p in subprocess.check_output(["git", "ls-files", "*.py"], text=True).split()]
def mod(f):
    m = ".".join(f.with_suffix("").parts)
    return m[:-9] if m.endswith(".__init__") else m
trees = {f: ast.parse(f.read_text()) for f in files}
mods = {mod(f): f for f in files}
grown = True
while grown:
    grown = False
    for f, t in trees.items():
        for n in ast.walk(t):
            if isinstance(n, ast.ImportFrom) and n.module:
                for a in n.names:
                    if (n.module, a.name) in S and not a.asname and (mod(f), a.name) not in S:
                        S[(mod(f), a.name)] = S[(n.module, a.name)]; grown = True
for (m, n) in list(S):
    assert m in mods, m
changed = 0
ALL = METHODS
for f in files:
    t, src = trees[f], f.read_text()
    METHODS = ALL if re.match(r'engine/(runs|store|worker|datasets/sources)|dashboard/(live|pages/study_page|app)|tests/(engine/(runs|test_store|test_logins|datasets/test_sources|test_worker|test_lasting)|dashboard/(fakes|desks|test_live|test_elsewhere|test_failing|test_owners|test_lesson|limits)|deploy|toy)', str(f)) else {}
    local = {}   # bare name -> new
    via = {}     # module alias -> {name: new}
    me = mod(f)
    for (m, n), new in S.items():
        if m == me: local[n] = new
    for node in ast.walk(t):
        if isinstance(node, ast.ImportFrom) and node.module:
            for a in node.names:
                full = f"{node.module}.{a.name}"
                if full in mods:
                    via[a.asname or a.name] = {n: new for (m, n), new in S.items() if m == full}
        if isinstance(node, ast.Import):
            for a in node.names:
                if a.asname and a.name in mods:
                    via[a.asname] = {n: new for (m, n), new in S.items() if m == a.name}
    importing_as = {a.name: S[(n.module, a.name)] for n in ast.walk(t) if isinstance(n, ast.ImportFrom) and n.module for a in n.names if (n.module, a.name) in S and a.asname}
    toks = list(tokenize.generate_tokens(io.StringIO(src).readline))
    lines = src.splitlines(keepends=True)
    edits = []
    depth = 0
    in_from = False
    for i, tk in enumerate(toks):
        if tk.type == tokenize.OP and tk.string in "([{": depth += 1
        if tk.type == tokenize.OP and tk.string in ")]}": depth -= 1
        if tk.type == tokenize.STRING and tk.string[:1] in "\"'" and tk.string[1:-1] in {**METHODS, **local}:
            w = tk.string[1:-1]
            if w in METHODS and w not in ("poke", "retire", "in_hand") or w in local and "__all__" in src and w[0].isupper():
                edits.append((tk.start, tk.end, tk.string[0] + {**METHODS, **local}[w] + tk.string[0]))
        if tk.type == tokenize.NAME:
            prev = toks[i - 1].string if i else ""
            nxt = toks[i + 1].string if i + 1 < len(toks) else ""
            new = None
            if prev == ".":
                owner = toks[i - 2].string if i > 1 else ""
                before = toks[i - 3].string if i > 2 else ""
                if owner in via and before != "." and tk.string in via[owner]: new = via[owner][tk.string]
                elif tk.string in METHODS: new = METHODS[tk.string]
            else:
                kw = nxt == "=" and depth > 0 and prev in ("(", ",")
                if tk.string in local and not kw: new = local[tk.string]
                elif tk.string in importing_as and nxt == "as": new = importing_as[tk.string]
                elif tk.string in METHODS and prev in ("def",) : new = METHODS[tk.string]
                elif tk.string in METHODS and tk.string in ("in_hand",): new = METHODS[tk.string]
            if new: edits.append((tk.start, tk.end, new))
    for (r, c0), (_, c1), new in sorted(edits, reverse=True):
        line = lines[r - 1]; lines[r - 1] = line[:c0] + new + line[c1:]
    out = "".join(lines)
    names = {**local, **METHODS}
    def tick(m):
        w = m.group(1); parts = w.split(".")
        parts = [names.get(p, p) if (p in names and (p[0].isupper() or p in METHODS or len(parts) == 1)) else p for p in parts]
        return "`" + ".".join(parts) + "`"
    out = re.sub(r"`([\w.]+)`", tick, out)
    if out != src: f.write_text(out); changed += 1
print("files changed", changed)
