// Places the tiles of figures (scant_dashboard/plots/tiles.py) in as many columns as fit, on live pages
// and on those without a session. What it sets is the browser's own affair (no `sync`).
const Tiles = (() => {
  const LEAST = 40 // pixels; a collapsed figure has a fraction of one
  const quietly = (model, values) => model.setv(values, {sync: false})

  // On a projector, tiles are as large as its height allows.
  const scale = () => new URLSearchParams(location.search).has('present') ? innerHeight / 500
    : parseFloat(getComputedStyle(document.documentElement).fontSize) / 16

  // Images that came as one array, each at its tile.
  const cut = (sheet, images) => {
    const {sheet: [all] = []} = Object.fromEntries(sheet.data instanceof Map ? sheet.data : Object.entries(sheet.data))
    if (images.of === all) return
    images.of = all
    const [n, height, width] = all?.shape ?? [0], tiles = Array.from({length: n}, (_, k) => k), size = height * width
    const image = tiles.map((k) => new all.constructor(Array.from({length: size}, (_, i) => all[k * size + i]), [height, width]))
    quietly(images, {data: {image, x: tiles, y: tiles}})
  }

  const arrange = (plot) => {
    const [n, least, most, row, across, down, x, y, size, room, names, sheet, images] = plot.tags
    // Bokeh's first layout, which calls again, sets the width; to ask for it before is an error.
    const width = plot.properties.inner_width.is_unset ? 0 : plot.inner_width
    if (!(n > 0 && width >= LEAST)) return
    const type = scale()
    let columns = Math.min(Math.max(1, Math.floor(width / (least * type))), n)
    while (row && row % columns) columns--
    const side = Math.min(width / columns, most * type), pixel = type / side
    const named = names.length > 0 && across.every(([tile, , px]) => px >= 0 || tile * side + px * type >= room * type)
    for (const renderer of names) quietly(renderer, {visible: named})
    // Where the parts of a tile begin and end, in tile widths.
    const ends = (parts) => parts.reduce((all, [tile, px, name]) => [...all, all.at(-1) + tile + (px + named * name) * pixel], [0])
    const [right, below] = [ends(across), ends(down)]
    const place = (axis, parts, corner) => {
      const knots = Array.from({length: n}, (_, k) => parts.map((end, i) => [k + i / parts.length, corner(k) + end])).flat()
      quietly(axis, {x: knots.map(([at]) => at), y: knots.map(([, to]) => to)})
    }
    place(x, right, (k) => k % columns)
    place(y, below, (k) => Math.floor(k / columns) * below.at(-1))
    quietly(size, {x: [0, 1], y: [0, right[2] - right[1]]})
    cut(sheet, images)
    const height = Math.ceil(n / columns) * below.at(-1)
    quietly(plot.x_range, {start: 0, end: width / side})
    quietly(plot.y_range, {start: height, end: 0})
    quietly(plot, {frame_height: Math.max(LEAST, Math.round(height * side))})
  }
  return {arrange}
})()
