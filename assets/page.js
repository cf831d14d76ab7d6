// Loaded with every page: lets nothing that a visitor does early be lost, takes the spinner away,
// keeps the theme. (The keys of present mode are in present.js.)

// What a browser draws from what it was told is its own affair: how it has coloured, sized and
// framed a figure (some hundred changes as a page opens) is nothing that the server asks about.
const OWN = /(Axis|Grid|Legend|Title|Toolbar|ColorBar|Figure|Range1d)$/

// Until the server hears that the document is ready it takes every change for one that went out
// with the page, and answers nothing. So what a visitor does on a page that is still being built
// waits for that word and follows it, in order.
const session = Bokeh.require('client/session').ClientSession.prototype
const send = session._document_changed
session._document_changed = function (event) {
  if ((event.events ?? [event]).every((one) => OWN.test(one.model?.type))) return
  if (this.early === undefined) this.early = []
  if (this.early === null) { send.call(this, event); return }
  if (event.msg_data?.event_name !== 'document_ready') { this.early.push(event); return }
  const early = this.early
  this.early = null
  for (const each of [event, ...early]) send.call(this, each)
}

// Bokeh takes models that the server has just sent for new ones of the browser's own, and sends each
// back whole with the next change that names it ("reference already known", says the server).
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

// The newest points of a curve that many watch, told to all browsers at once by
// dashboard/news.py: they are drawn after the curve until they have become part of it.
const newest = (doc) => doc.on_message('scant_news', (told) => {
  const [curve, news, extent] = ['curve', 'news', 'extent'].map((name) => doc.get_model_by_name(name))
  if (!curve || !news || !extent) return
  const show = (source, data) => source.setv({data}, {sync: false})
  if (!news.heard) {
    news.heard = true
    const forget = () => show(news, {step: [], elbo: [], score: []})
    curve.connect(curve.streaming, forget)
    curve.connect(curve.properties.data.change, forget)
  }
  const drawn = curve.data.step.length - 1
  if (drawn < 0) return
  const fresh = told.step.findIndex((step) => step > curve.data.step[drawn])
  if (fresh < 0) return
  const joined = (name) => [curve.data[name][drawn], ...told[name].slice(fresh).map((v) => v ?? NaN)]
  const [elbo, score] = [joined('elbo'), joined('score')]
  show(news, {step: joined('step'), elbo, score})
  const top = Math.max(...[...elbo, ...score, extent.data.y[1]].filter(Number.isFinite))
  show(extent, {x: [extent.data.x[0], told.step.at(-1)], y: [extent.data.y[0], top]})
})
const listen = () => Bokeh.documents.length ? Bokeh.documents.forEach(newest) : setTimeout(listen, 100)
listen()

const everywhere = (visit, root = document) => {
  for (const node of root.querySelectorAll('*')) {
    visit(node)
    if (node.shadowRoot) everywhere(visit, node.shadowRoot)
  }
}

// The stock loader waits for every plot, also for those far below; we wait for the heading.
const unveil = () => {
  let painted = false
  everywhere((node) => { painted ||= node.tagName === 'H1' })
  const loader = document.getElementById('loader')
  if (painted && loader) loader.style.visibility = 'hidden'
  else setTimeout(unveil, 100)
}
addEventListener('DOMContentLoaded', () => setTimeout(unveil, 200))

// The theme goes with the visitor from page to page.
addEventListener('click', () => setTimeout(() => {
  let dark = false
  everywhere((node) => { dark ||= node.classList.contains('mui-dark') })
  document.cookie = `scant_theme=${dark ? 'dark' : 'light'};path=/;max-age=31536000;samesite=lax`
}, 250))
