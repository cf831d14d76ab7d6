// Loaded before all others. FilePond, which draws the field for files, redraws it sixty times a
// second from the moment its script is there, whether there is a field or not: six per cent of a
// core for every page that is open. It takes this painter for its own, which works while there is
// a field. See pqina/filepond#243, which FilePond 5 mends. Of the FilePond in Panel 1.9, pinned in
// pyproject.toml.
const painter = {readers: [], writers: []}
window.__framePainter = painter

const fields = new Set()
let timer
const draw = () => {
  for (const read of painter.readers) read()
  for (const write of painter.writers) write(performance.now())
  if (fields.size) return
  clearInterval(timer)
  timer = undefined
}

document.addEventListener('DOMContentLoaded', () => {
  if (!window.FilePond) return
  const {create} = FilePond
  FilePond.create = (...how) => {
    const field = create(...how), {destroy} = field
    fields.add(field)
    field.destroy = () => { fields.delete(field); destroy() }
    timer ??= setInterval(draw, 1000 / 60)
    return field
  }
})
