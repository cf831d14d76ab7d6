"""The frame that every study's page fills: story, data, form, run bar, live views, result, explore, keep.

What the page file supplies is `views.Views`; read the contract there. What the frame gives to the
page file, as `page` in `views(page)`:

- `page.entry`: the catalog entry.
- `page.run`: the `live.History` on show (None until one is open).
- `page.present`, `page.dark`: bool, as of now.
- `page.ask(question, then, **asked)`: `RunService.explore(run, question, asked)` on the run on show,
  with a busy mark on the page; returns at once. `then(answer: dict[str, np.ndarray])` is called later on
  the session's document, inside `hold`, where writing to data sources is safe (after an `await` it would
  not be). An answer that came too late is dropped (a newer question of the same word was asked, or another
  run opened). A `BadInput` is said in the message region.
- `page.say(text, kind="info" | "warning" | "error")`: one sentence in the message region (plain text).
- `page.link(**query) -> str`: this page's address with the run and settings on show, changed by `query`
  (settings by name; `run=None` drops the run), for links such as "train the same with …".

The keep section calls `dashboard.export`, each function given the run's `live.History` (record,
settings, report, trace, words): `notebook(run) -> bytes`, `script(run) -> str`,
`metrics_csv(run) -> str`, `predictions_csv(run, entry) -> str`, `settings_json(run) -> str`,
`figures_html(run, views) -> str`. A function that raises `BadInput` shows its sentence.
"""
