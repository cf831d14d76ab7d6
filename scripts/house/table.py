# ruff: noqa
# fmt: off
"""old -> new, as dotted modules under the present names engine.* and dashboard.*"""
T = {}
def put(prefix_old, prefix_new, names):
    for n in names.split():
        a, _, b = n.partition("=")
        T[f"{prefix_old}.{a}"] = f"{prefix_new}.{b or a}"

S = "scant"
T["engine"] = S
put("engine", S, "errors events metrics labels=label_agreement machine=hardware")
put("engine", f"{S}.training", "control training=loop fitting=api results=result_folder")
put("engine", f"{S}.inference", "expectations")
put("engine", f"{S}.data_sources", "shipped=package_data")
put("engine", f"{S}.reproduce", "reproducing=runner reproduced=tables")
put("engine", f"{S}.runs", "worker")
T["engine.runs"] = f"{S}.runs"
put("engine.runs", f"{S}.runs", "service attempts=dispatcher sharing=leases cluster=dask_cluster desk=worker_client live=active_run queue")
T["engine.store"] = f"{S}.store"
put("engine.store", f"{S}.store", "schema records claim_shelf=claims run_shelf=runs recording_shelf=recordings upload_shelf=uploads")
T["engine.datasets"] = f"{S}.tables"
put("engine.datasets", f"{S}.tables", "tables=schema decoding=encoding parsing=csv_parser cells naming=column_matching rules=checks reading=read exporting=csv_safety finite=as_finite")
put("engine.datasets", f"{S}.tables.images", "archives images=image_table photographs features")
put("engine.datasets", f"{S}.data_sources", "keeping=cache fetch sources=open hfd=human_fertility motion=cmu_mocap expression=drosophila omniglot")
st = lambda s: f"{S}.studies.{s}"
put("engine.datasets", st("aggregation"), "supports=table published=published_data coarsening=thinning")
put("engine.datasets", st("aggregation") + ".simulate", "fertility particulates poisson_toy=poisson")
put("engine.datasets", st("genes"), "replicas=table replicas_toy=simulate")
put("engine.datasets", st("mitosis"), "nuclei=table cells_toy=simulate")
put("engine.datasets", st("omniglot"), "characters=table strokes=simulate")
put("engine.datasets", st("clamp"), "patches=table pipes=simulate")
put("engine.datasets", st("redshift"), "photometry=simulate")
put("engine.datasets", st("events"), "views=table")
put("engine.datasets", st("events") + ".simulate", "events_toy=cell_events so2_toy=so2 survival_toy=survival")
put("engine.kernels", f"{S}.kernels", "class_private=shared_private eq=rbf replica=hierarchical")
T["engine.kernels"] = f"{S}.kernels"
put("engine.kernels", f"{S}.kernels.box_average", "interval=kernel interval_eq=interval_rbf support")
put("engine.kernels", f"{S}.kernels.patch", "patch=kernel patch_pairs=pairs patch_rows=rows")
T["engine.likelihoods"] = f"{S}.likelihoods"
put("engine.likelihoods", f"{S}.likelihoods", "augment_reduce")
M = f"{S}.models"
T["engine.models"] = M
put("engine.models", f"{M}.gpz", "gpz=model gpz_basis=basis gpz_coordinates=change_of_basis gpz_evidence=evidence gpz_inputs=uncertain_inputs gpz_mixture=input_density gpz_prediction=prediction gpz_targets=weights")
put("engine.models", f"{M}.mtgpa", "mtgpa=model mtgpa_baselines=baselines mtgpa_exact=exact mtgpa_latent=variational mtgpa_likelihoods=likelihoods mtgpa_prior=prior mtgpa_start=initialization mtgpa_training=training")
put("engine.models", f"{M}.mogp_ar", "mogp_ar=model mogp_ar_prediction=prediction mogp_baselines=baselines mogp_kernels=kernels mogp_mixing=mixing mogp_training=training mogp_whitening=whitening")
put("engine.models", f"{M}.gplvm", "bgplvm bgplvm_bound=collapsed_bound bgplvm_inference=latent_inference bgplvm_training=training dgplvm sclvm")
put("engine.models", f"{M}.replicated", "hgp replica_baselines=baselines replica_data=data replica_exact=exact replica_training=training")
put("engine.models", f"{M}.replicated.hmogp_lv", "hmogp_lv=model hmogp_lv_bound=bound hmogp_lv_latent=latent hmogp_lv_layout=layout hmogp_lv_posterior=posterior hmogp_lv_start=initialization hmogp_lv_training=training lvmogp")
put("engine.models", f"{M}.dfgp", "dfgp=model dfgp_bounds=bounds dfgp_likelihoods=likelihoods dfgp_hidden=hidden dfgp_output=output dfgp_training=training")
put("engine.models", f"{M}.laplace", "laplace=classifier laplace_links=links acquisition stopping")
put("engine.models", M, "student_t svgp")
put("engine.models", f"{S}.optim", "adam_lbfgs lbfgs optimiser_state=state")
put("engine.models", f"{S}.inference", "jitter=numerical_warnings")
T["engine.catalog"] = f"{S}.studies"
T["engine.catalog.entry"] = f"{S}.studies.base"
T["engine.catalog.mitosis_cost"] = st("mitosis") + ".cost"
for s in "aggregation redshift genes omniglot mitosis events clamp".split():
    T[f"engine.catalog.{s}"] = st(s) + ".entry"
    T[f"engine.studies.{s}"] = st(s) + ".study"
T["engine.studies"] = f"{S}.studies.protocol"
put("engine.studies", f"{S}.studies", "asked=query predicted=predicted_table")
def study(s, names):
    for n in names.split():
        a, _, b = n.partition("=")
        T[f"engine.studies.{s}_{a}"] = st(s) + "." + (b or a)
study("aggregation", "explore report scarcity space=preprocessing tables=reproduce")
study("clamp", "baselines explore models=active_learner patches=patch_views pictures report rows=splits tables=reproduce")
study("events", "baselines explore looks=preprocessing models report rows=splits scarcity survival tables=reproduce")
study("genes", "explore models report rows=preprocessing tables=reproduce")
study("mitosis", "baselines cases=published_data columns=preprocessing covariances explore models report rows=splits tables=reproduce")
study("omniglot", "baselines cases=published_data explore matrices=coregionalization models report rows=preprocessing tables=reproduce temperature")
study("redshift", "explore features=preprocessing members=ensemble report tables=reproduce")
T["engine.bench"] = f"{S}.bench"
put("engine.bench", f"{S}.bench", "builders cases peers rows steps stock studies table timing")
T["engine.data"] = f"{S}.data"

D = f"{S}.dashboard"
T["dashboard"] = D
put("dashboard", D, "app export bench_page")
put("dashboard", f"{D}.frame", "shell")
put("dashboard", f"{D}.live", "live=hub history=run_state news=broadcast")
put("dashboard", f"{D}.study_page", "lesson")
T["dashboard.pages"] = f"{D}.pages"
put("dashboard.pages", f"{D}.study_page", "study_page=page layout figure place=widgets views growing=on_demand withheld=hidden_until_revealed alternatives=variants reproduced=published_table")
put("dashboard.pages", f"{D}.pages", "gallery")
def page(s, names):
    T[f"dashboard.pages.{s}"] = f"{D}.pages.{s}.page"
    for n in names.split():
        a, _, b = n.partition("=")
        T[f"dashboard.pages.{s}_{a}"] = f"{D}.pages.{s}." + (b or a)
page("aggregation", "box curve field")
page("clamp", "label=labeling_view picture pool queue session=labeling_session")
page("events", "on=view_ablation otherwise=variants patient result row=row_explanation scarcity")
page("genes", "browse compare grid hide=held_out_replica")
page("mitosis", "cells generate imbalance place=latent_placement spaces tabs threshold walk=latent_traversal")
page("omniglot", "alphabets draw gallery matrices rows shots zoom=submatrix")
page("redshift", "bands kept=rejection")
T["dashboard.plots"] = f"{D}.plots"
put("dashboard.plots", f"{D}.plots", "base bins boxes calibration cohort decimate density elbo entropy hidden=hidden_units hinton hinton_grid images imbalance influence=view_contributions intervals kept=rejection_curve key=fixed_legend label_efficiency latent learning_curve levels=variance_components matrix meaning=metric_glossary methods missing patient pool precision_recall recall relevance reliability replicas scarcity scatter separation=score_distribution shots surface survival table theme tiles variance views_on=view_ablation")
T["dashboard.plots.late"] = f"{D}.study_page.lazy_view"
T["dashboard.controls"] = f"{D}.controls"
put("dashboard.controls", f"{D}.controls", "compare data_panel download estimate fetch keep=export_panel labelling=labeling_widget lesson pad=drawing_canvas replay reveal=guess_first run_bar run_list settings_form status trouble=health_banner upload upload_images")
T["dashboard.assets"] = f"{D}.assets"

HOMES = {"Column": "tables","ColumnPreview": "tables","Preview": "tables","Table": "tables","TableSchema": "tables","data_dir": "sources","fetch": "fetch","inspect_table": "reading","open_table": "sources","open_to_predict": "sources","read_frame": "reading","read_image_table": "images","read_images": "archives","read_table": "reading","safe_for_spreadsheet": "exporting","sample": "sources"}

# what issue 16 brought
put("dashboard", f"{D}.server", "answers headers listening ready routes")
put("dashboard", f"{D}.upstream", "delivery mending=panel_patches")
put("dashboard.controls", f"{D}.controls", "dropper=file_dropper store_banner")
T["engine.cli"] = f"{D}.cli.main"
T["engine.cli_runs"] = f"{D}.cli.runs"
T["engine.cli_users"] = f"{D}.cli.users"
put("engine", S, "accounts")
put("engine", f"{S}.runs", "dask_nodes memory")
put("engine", f"{S}.training", "outputs=output_folder")
put("engine", f"{S}.store", "private_files")
put("engine.datasets", f"{S}.tables", "sentinels")
put("engine.runs", f"{S}.runs", "access backlog keeping limited limits turns writer=store_writer")
put("engine.store", f"{S}.store", "clock limit_shelf=limits login_repository=logins opening quota schema_limits sealed trouble")
put("dashboard.auth", f"{D}.auth", "login login_sessions page_protocol page_session proxy redirects same_origin throttle visitor_cookie")
