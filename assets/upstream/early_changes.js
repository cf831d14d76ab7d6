// A browser tells the server of its changes as soon as they are made, and of all of them. No issue of
// Bokeh's is known to us. Private API of Bokeh 3.9, pinned in pyproject.toml.
{
// What a browser draws from what it was told is its own affair: how it has colored, sized and
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
}
