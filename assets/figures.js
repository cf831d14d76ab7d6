// Figures of pages without a session (scant_dashboard/static_page/figure_models.py): pictures where
// there are some, and Bokeh's models as JSON, which BokehJS draws as they come near. Where data have
// changed, the models are told, so that nothing flickers.
const Figures = (() => {
  const script = document.currentScript
  const PLOT = '.plot[data-key]'
  const PAGE_FONT_SIZE = 16, TITLE_EM = 14 // pixels; Bokeh scales no em of titles (upstream/text_size.js)
  const drawn = new WeakMap() // of an element: the JSON that it shows, its text, and Bokeh's document
  const holds = (plot) => [...plot.children].filter(({type}) => type === 'application/json')
  const textOf = (plot) => holds(plot).map(({textContent}) => textContent).join('\n')

  const each = function* (value) {
    if (value === null || typeof value !== 'object') return
    if (value.type === 'object' && value.id) yield value
    for (const part of Object.values(value)) yield* each(part)
  }
  // The figure's JSON with its data, as the page's theme has it.
  const read = (plot) => {
    const [own, ...columns] = holds(plot), look = getComputedStyle(plot)
    const figure = JSON.parse(own.textContent.replace(/var\((--\w+)\)/g, (_, name) => look.getPropertyValue(name).trim()))
    const data = new Map(columns.map((one) => [one.dataset.source, one]))
    const scale = parseFloat(look.fontSize) / PAGE_FONT_SIZE
    const scaled = (size) => size?.replace(/^([\d.]+)em$/, (_, n) => `${n * TITLE_EM * scale}px`)
    for (const model of each(figure)) {
      const attributes = model.attributes ??= {}
      if (model.name === 'Title') attributes.text_font_size = scaled(attributes.text_font_size)
      if (model.name === 'Rect' && look.colorScheme.includes('dark')) attributes.dilate = true // as Panel's theme
      if (data.has(model.id)) attributes.data = JSON.parse(data.get(model.id).textContent)
    }
    return figure
  }
  // Models that are no part of a page come once one of them is needed: all, or those of the same name.
  const fetching = new Map()
  const models = (plot) => {
    const place = plot.closest('[data-figures]') ?? root, name = place.dataset?.figures ?? ''
    if (!fetching.has(name)) fetching.set(name, fetch(`${location.pathname}?figures${name && `=${encodeURIComponent(name)}`}${script.dataset.query ?? ''}`)
      .then((answer) => answer.text()).then((html) => {
        const made = document.createElement('template')
        made.innerHTML = html
        const all = [...place.querySelectorAll(PLOT)]
        ;[...made.content.children].forEach((one, i) => all[i]?.append(...one.children))
      }))
    return fetching.get(name)
  }
  const draw = async (plot) => {
    if (drawn.has(plot)) return
    if (!holds(plot).length) await models(plot)
    if (drawn.has(plot) || !holds(plot).length) return
    const figure = read(plot), text = textOf(plot)
    drawn.set(plot, {figure, text})
    const holder = document.createElement('div')
    holder.dataset.canvas = ''
    plot.append(holder)
    const doc = {version: Bokeh.version, title: '', roots: [figure]}
    const [view] = (await Bokeh.embed.embed_item({doc, root_id: figure.id}, holder)).roots
    drawn.set(plot, {figure, text, view, doc: view.model.document})
    plot.dataset.drawn = ''
    const {model} = view, resize = () => Tiles.arrange(model)
    model.connect(model.properties.inner_width.change, resize)
    resize()
    align(plot)
    refresh()
  }

  // Side by side, figures have equal borders, as in a live page's columns.
  const align = (plot) => {
    const group = [...plot.parentElement.parentElement.children].flatMap((box) => [...box.children].filter((one) => one.matches(PLOT)))
    const views = group.map((one) => drawn.get(one)?.view)
    if (group.length < 2 || !views.every(Boolean)) return
    const [left, right] = [({frame}) => frame.bbox.left, ({frame, bbox}) => bbox.width - frame.bbox.right]
      .map((border) => Math.ceil(Math.max(...views.map(border))))
    for (const {model} of views) model.setv({min_border_left: left, min_border_right: right})
  }

  // Of what differs between two states of a figure, the changes as messages to Bokeh's document; null
  // if a property has returned to its default, which is not named.
  const slim = (value, known) => {
    if (value === null || typeof value !== 'object') return value
    if (Array.isArray(value)) return value.map((part) => slim(part, known))
    if (value.id && known.has(value.id)) return {id: value.id}
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, slim(part, known)]))
  }
  const changes = (old, now) => {
    const known = new Map([...each(old)].map((model) => [model.id, model])), events = []
    for (const {id, attributes} of each(now)) {
      const before = known.get(id)?.attributes
      if (!before) continue // comes with what refers to it
      if (Object.keys(before).some((name) => !(name in attributes))) return null
      for (const [name, value] of Object.entries(attributes)) {
        const made = slim(value, known)
        if (JSON.stringify(slim(before[name], known)) !== JSON.stringify(made)) events.push({kind: 'ModelChanged', model: {id}, attr: name, new: made})
      }
    }
    return events
  }
  const update = (plot) => {
    const {figure, doc} = drawn.get(plot), now = read(plot), events = figure.id === now.id ? changes(figure, now) : null
    if (events === null) {
      drawn.delete(plot)
      plot.querySelector(':scope > [data-canvas]').remove()
      doc.clear()
      draw(plot)
      return
    }
    if (events.length) doc.apply_json_patch({events})
    for (const model of doc.roots()) Tiles.arrange(model)
    drawn.set(plot, {...drawn.get(plot), figure: now, text: textOf(plot)})
  }
  const refresh = () => {
    for (const plot of root.querySelectorAll(PLOT)) {
      const shown = drawn.get(plot)
      if (!shown) { if (!fits(plot)) near.observe(plot) }
      else if (shown.doc && shown.text !== textOf(plot)) update(plot)
    }
  }

  // A picture suffices while it has the width at which it was made, until it is pointed at.
  const pictureOf = (plot) => [...plot.children].find((one) => one.nodeName === 'svg' && one.getClientRects().length)
  const fits = (plot) => {
    const picture = plot.dataset.drawn === undefined && pictureOf(plot)
    if (!picture || plot.dataset.fixed !== undefined) return picture
    const room = Math.max(plot.clientWidth, parseFloat(plot.style.getPropertyValue('--least')) || 0)
    return Math.abs(picture.width.baseVal.value - room) < 8
  }
  // Where the data of a figure lie on the screen.
  const frame = (plot) => {
    const view = drawn.get(plot)?.view
    if (!view) return pictureOf(plot)?.querySelector('.frame').getBoundingClientRect()
    const {left, top} = view.el.getBoundingClientRect(), box = view.frame.bbox
    return new DOMRect(left + box.left, top + box.top, box.width, box.height)
  }
  const shot = (plot) => drawn.get(plot)?.view?.export('png', false).canvas.toDataURL('image/webp', .8)

  // Elements stay where they are of the same kind: a live region is heard, and nothing flickers.
  const become = (old, now) => {
    if (old.isEqualNode(now)) return
    const one = old.nodeType === now.nodeType && old.nodeName === now.nodeName
    if (!one || ['STYLE', 'TEMPLATE'].includes(old.nodeName)) { old.replaceWith(now); return }
    if (old.nodeType !== Node.ELEMENT_NODE) { old.data = now.data; return }
    for (const {name} of [...old.attributes])
      if (!now.hasAttribute(name) && name !== 'data-drawn' && !(name === 'open' && old.nodeName === 'DETAILS')) old.removeAttribute(name)
    for (const {name, value} of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value)
    const canvas = [...old.children].find(({dataset}) => dataset.canvas !== undefined) ?? null
    const was = [...old.childNodes].filter((node) => node !== canvas), is = [...now.childNodes]
    is.forEach((node, i) => { if (i < was.length) become(was[i], node); else old.insertBefore(node, canvas) })
    was.slice(is.length).forEach((node) => node.remove())
  }
  // Puts elements, as HTML by selector, in the places of those before.
  const put = (parts) => {
    const made = document.createElement('template')
    for (const [place, html] of Object.entries(parts)) {
      const old = root.querySelector(place)
      made.innerHTML = html
      if (old) become(old, made.content.firstElementChild)
    }
    refresh()
  }

  const root = document
  const near = new IntersectionObserver((entries) => {
    for (const {target, isIntersecting} of entries) if (isIntersecting) {
      near.unobserve(target)
      if (target.checkVisibility?.() ?? true) due.push(target) // not within details that are closed
    }
    if (due.length) work()
  }, {rootMargin: '600px'})
  const due = []
  let busy = false
  const work = async () => {
    if (busy) return
    busy = true
    await loaded()
    for (let plot; (plot = due.shift());) {
      await draw(plot)
      await new Promise((done) => setTimeout(done))
    }
    busy = false
  }
  let loading = null
  const loaded = () => loading ??= typeof Bokeh !== 'undefined' ? Promise.resolve() : new Promise((done, failed) =>
    document.head.append(Object.assign(document.createElement('script'), {src: script.dataset.bokeh, onload: done, onerror: failed})))
  new MutationObserver(() => { for (const plot of root.querySelectorAll(`${PLOT}[data-drawn]`)) if (drawn.get(plot)?.doc) update(plot) })
    .observe(document.documentElement, {attributeFilter: ['class']})
  root.addEventListener('pointerover', ({target}) => {
    const plot = target.closest?.(PLOT)
    if (plot && !drawn.has(plot) && !due.includes(plot)) { due.push(plot); work() }
  })
  addEventListener('resize', () => refresh())
  addEventListener('toggle', () => refresh(), true) // of details
  if (document.readyState === 'complete') refresh()
  else addEventListener('load', refresh)
  const all = () => { due.push(...root.querySelectorAll(PLOT)); work() }
  return {all, frame, put, shot}
})()
