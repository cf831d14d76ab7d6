// Files dropped anywhere on the page and tables pasted from a spreadsheet (dashboard/controls/intake.py):
// the server opens the wizard, whose field then gets them. Addresses are only refused.
export function render({model}) {
  window.scantIntake?.abort()
  const stop = window.scantIntake = new AbortController()
  const on = (name, act) => window.addEventListener(name, act, {signal: stop.signal})
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
  const take = (file) => {
    model.send_msg({act: 'open'})
    give(file)
  }
  const among = (event, name) => event.composedPath().some((node) => node.matches?.(name))

  const veil = document.createElement('div')
  veil.className = 'veil'
  veil.textContent = 'Drop the file to use it as your own data.'
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
    if (among(event, '.filepond--root')) return  // the field takes it itself
    const file = event.dataTransfer?.files[0], words = event.dataTransfer?.getData('text/uri-list') ?? ''
    if (!file && !words) return
    event.preventDefault()
    if (file) take(file)
    else model.send_msg({act: 'address'})
  })
  on('paste', (event) => {
    if (among(event, TYPED)) return
    const file = event.clipboardData?.files[0], words = event.clipboardData?.getData('text/plain') ?? ''
    if (file) take(file)
    else if (ADDRESS.test(words)) model.send_msg({act: 'address'})
    else if (words.includes('\t') && words.trim().includes('\n')) {
      take(new File([words], 'pasted.tsv', {type: 'text/tab-separated-values'}))
    }
  })
  // Who has used the page once finds its story folded (frame/session.py).
  on('scant-pressed', () => {
    const secure = location.protocol === 'https:' ? ';secure' : ''
    document.cookie = `scant_used=1;path=/;max-age=31536000;samesite=lax${secure}`
  })
}
