// Bokeh tells a page of a connection that is lost (ConnectionLost), but not of one that is refused
// before there was a session. Here the browser's document gets the event 'scant-refused', once for
// each connection. No issue of Bokeh's is known to us.
// Private API of Bokeh 3.9, pinned in pyproject.toml.
{
const connection = Bokeh.require('client/connection').ClientConnection.prototype
const closed = connection._on_close
connection._on_close = function (event, reject) {
  closed.call(this, event, reject)
  if (this.session || this.refused) return
  this.refused = true
  document.dispatchEvent(new Event('scant-refused'))
}
}
