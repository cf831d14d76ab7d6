// Bokeh takes models that the server has just sent for new ones of the browser's own, and sends each
// back whole with the next change that names it. The server warns of a "reference already known"
// since bokeh/bokeh#12915, which leaves the cause. Private API of Bokeh 3.9, pinned in pyproject.toml.
{
const documents = Bokeh.require('document/document').Document.prototype
const applyPatch = documents._apply_json_patch
documents._apply_json_patch = function (patch, buffers) {
  const sent = new Set()
  const collect = (node) => {
    if (Array.isArray(node)) node.forEach(collect)
    else if (node !== null && node?.constructor === Object) {
      if (node.type === 'object' && node.id !== undefined) sent.add(node.id)
      Object.values(node).forEach(collect)
    }
  }
  collect(patch.events)
  const added = this._new_models
  added.add = (model) => sent.has(model.id) ? added : Set.prototype.add.call(added, model)
  try { applyPatch.call(this, patch, buffers) } finally { delete added.add }
}
}
