// Files dropped anywhere on the page and tables pasted from a spreadsheet (scant_dashboard/controls/intake.py):
// the server opens the wizard, whose field then gets them. Several files go to it as one ZIP, for it
// takes one file at a time. Addresses are only refused.
const CRC = Uint32Array.from({length: 256}, (_, n) => {
  for (let k = 0; k < 8; k += 1) n = n & 1 ? 0xEDB88320 ^ (n >>> 1) : n >>> 1
  return n
})
const checksum = (bytes) => {
  let sum = ~0
  for (const byte of bytes) sum = CRC[(sum ^ byte) & 255] ^ (sum >>> 8)
  return ~sum >>> 0
}
// Numbers as little-endian bytes: [size, value], ...
const header = (...fields) => {
  const made = new DataView(new ArrayBuffer(fields.reduce((sum, [size]) => sum + size, 0)))
  let at = 0
  for (const [size, value] of fields) {
    if (size === 2) made.setUint16(at, value, true)
    else made.setUint32(at, value, true)
    at += size
  }
  return new Uint8Array(made.buffer)
}
// A ZIP of files, stored as they are (PKWARE's APPNOTE, 4.3).
const packed = async (files) => {
  const parts = [], list = []
  let at = 0, listed = 0
  for (const file of files) {
    const bytes = new Uint8Array(await file.arrayBuffer()), name = new TextEncoder().encode(file.name)
    const about = header(
      [2, 20], [2, 0x800], [2, 0], [2, 0], [2, 0x21], [4, checksum(bytes)],
      [4, bytes.length], [4, bytes.length], [2, name.length], [2, 0])
    const own = [header([4, 0x04034B50]), about, name, bytes]
    const entry = [
      header([4, 0x02014B50], [2, 20]), about,
      header([2, 0], [2, 0], [2, 0], [4, 0], [4, at]), name]
    const size = (all) => all.reduce((sum, part) => sum + part.length, 0)
    parts.push(...own)
    list.push(...entry)
    at += size(own)
    listed += size(entry)
  }
  const count = files.length
  const end = header(
    [4, 0x06054B50], [2, 0], [2, 0], [2, count], [2, count], [4, listed], [4, at], [2, 0])
  const name = files.map(({name}) => name.replace(/\.[^.]*$/, '')).join(' + ').slice(0, 80)
  return new File([...parts, ...list, end], `${name}.zip`, {type: 'application/zip'})
}

// Texts of the field itself; FilePond has them in English.
const labels = () => ({
  labelIdle: tr('Drag & Drop your files or <span class="filepond--label-action">Browse</span>'),
  labelFileLoading: tr('Loading'),
  labelFileProcessing: tr('Uploading'),
  labelFileProcessingComplete: tr('Upload complete'),
  labelFileProcessingError: tr('Error during upload'),
  labelTapToCancel: tr('tap to cancel'),
  labelTapToRetry: tr('tap to retry'),
  labelTapToUndo: tr('tap to undo'),
  labelMaxFileSizeExceeded: tr('File is too large'),
  labelMaxFileSize: tr('Maximum file size is {filesize}', {filesize: '{filesize}'}),
})

export function render({model}) {
  window.FilePond?.setOptions(labels())
  window.scantIntake?.abort()
  const stop = window.scantIntake = new AbortController()
  const on = (name, act, capture = false) =>
    window.addEventListener(name, act, {capture, signal: stop.signal})
  const ADDRESS = /^\s*(https?|ftp|s3|gs|file):\/\/\S+\s*$/i
  const TYPED = 'input, textarea, select, [contenteditable]'

  const field = () => {
    let found = null
    everywhere((node) => { if (node.classList.contains('filepond--browser')) found = node })
    return found
  }
  const give = (file, tries = 150) => {
    const input = field()
    if (!input) {
      if (tries) setTimeout(give, 100, file, tries - 1)
      return
    }
    const carrier = new DataTransfer()
    carrier.items.add(file)
    input.files = carrier.files
    input.dispatchEvent(new Event('change', {bubbles: true}))
  }
  const take = async (files) => {
    model.send_msg({act: 'open'})
    give(files.length > 1 ? await packed(files) : files[0])
  }
  // The field itself lets a visitor choose several files, which it gets as one. It draws itself anew,
  // so that whoever comes near it is looked at each time.
  const near = (event) => {
    const root = event.composedPath().find((node) => node.matches?.('.filepond--root'))
    const input = root?.querySelector('.filepond--browser')
    if (!input || input.multiple) return
    input.multiple = true
    input.addEventListener('change', (chosen) => {
      const files = [...input.files]
      if (files.length < 2) return
      chosen.stopImmediatePropagation()
      packed(files).then((file) => give(file))
    }, {capture: true, signal: stop.signal})
  }
  for (const name of ['pointerover', 'pointermove', 'focusin']) on(name, near, true)
  const among = (event, name) => event.composedPath().some((node) => node.matches?.(name))

  const veil = document.createElement('div')
  veil.className = 'veil'
  veil.textContent = tr('Drop a file to use it as your own data, or several files that belong together.')
  let inside = 0
  const over = (shown) => {
    inside = shown ? inside : 0
    if (shown) document.body.append(veil)
    else veil.remove()
  }
  const files = (event) => event.dataTransfer?.types.includes('Files')
  on('dragenter', (event) => { if (files(event)) { inside += 1; over(true) } })
  on('dragleave', (event) => { if (files(event) && --inside <= 0) over(false) })
  on('dragover', (event) => { if (files(event) || event.dataTransfer?.types.includes('text/uri-list')) event.preventDefault() })
  on('drop', (event) => {
    over(false)
    const files = [...(event.dataTransfer?.files ?? [])]
    if (among(event, '.filepond--root')) {  // the field takes one file itself
      if (files.length < 2) return
      event.stopImmediatePropagation()
    }
    const words = event.dataTransfer?.getData('text/uri-list') ?? ''
    if (!files.length && !words) return
    event.preventDefault()
    if (files.length) take(files)
    else model.send_msg({act: 'address'})
  }, true)
  on('paste', (event) => {
    if (among(event, TYPED)) return
    const files = [...(event.clipboardData?.files ?? [])]
    const words = event.clipboardData?.getData('text/plain') ?? ''
    if (files.length) take(files)
    else if (ADDRESS.test(words)) model.send_msg({act: 'address'})
    else if (words.includes('\t') && words.trim().includes('\n')) {
      take([new File([words], 'pasted.tsv', {type: 'text/tab-separated-values'})])
    }
  })
}
