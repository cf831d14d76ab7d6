// Bokeh lays out the whole page again for every part that changes its size, is shown or is hidden,
// and writes each style sheet of each part anew. A page of ours has some hundred parts. Here a
// change lays out the parts that it concerns, once, before the browser paints next. See
// bokeh/bokeh#12129 and #14558. Private API of Bokeh 3.9, pinned in pyproject.toml.
{
  const {LayoutDOMView} = Bokeh.require('models/layouts/layout_dom')
  const {PlotView} = Bokeh.require('models/plots/plot_canvas')
  const {InlineStyleSheet} = Bokeh.require('core/dom')
  const layout = LayoutDOMView.prototype
  const {compute_layout, invalidate_layout} = layout

  const laid = (view) => view.parent instanceof LayoutDOMView
  const rootOf = (view) => laid(view) ? rootOf(view.parent) : view
  const changed = new Set(), roots = new Set()
  let waits = false

  const due = () => {
    if (!waits) return
    waits = false
    const views = [...changed].filter((view) => !view.is_destroyed)
    changed.clear()
    const within = (view) => laid(view) && (views.includes(view.parent) || within(view.parent))
    const tops = views.filter((view) => !within(view))
    for (const view of tops) view.update_layout()
    // What it stands in keeps a list of what is laid out within, from the innermost outwards.
    const depths = new Map()
    const depth = (view) => laid(view) ? 1 + depth(view.parent) : 0
    const climb = (view) => { if (laid(view)) { depths.set(view.parent, depth(view.parent)); climb(view.parent) } }
    tops.forEach(climb)
    for (const [around] of [...depths].sort((one, other) => other[1] - one[1])) {
      around.update_style()
      for (const child of around.child_views) child.parent_style.clear()
      around._update_layout()
    }
    const whole = [...roots]
    roots.clear()
    for (const root of whole) if (!root.is_destroyed) root.compute_layout()
  }
  const wait = (view) => {
    roots.add(rootOf(view))
    if (waits) return
    waits = true
    requestAnimationFrame(due)
    setTimeout(due, 100) // a page in the background has no frames
  }

  layout.invalidate_layout = function () {
    if (!laid(this)) { invalidate_layout.call(this); return }
    changed.add(this)
    wait(this)
  }
  layout.compute_layout = function () {
    if (!laid(this)) { compute_layout.call(this); return }
    if (this instanceof PlotView && this.layout != null) {
      // It is aligned with the plots beside it, and concerns nobody else.
      const group = this.parent.layout != null ? this.parent : this
      group.measure_layout()
      group.update_bbox()
      group._compute_layout()
      group.after_layout()
    } else wait(this)
    this._layout_computed = true
  }

  // A plot that has just come to the page is measured once it is laid out.
  for (const name of ['_measure_layout', '_after_layout']) {
    const own = PlotView.prototype[name]
    PlotView.prototype[name] = function () { if (this.layout != null) own.call(this) }
  }

  // What a sheet says already is not written again, upon which the browser would look at its part
  // anew.
  const write = InlineStyleSheet.prototype._update
  InlineStyleSheet.prototype._update = function (css) {
    if (css !== this.el.textContent) write.call(this, css)
  }
}
