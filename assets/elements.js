// Stands before each component that is a file (`component` in scant_dashboard/template.py).
const make = (tag, name = '', words = '') => {
  const made = document.createElement(tag)
  made.className = name
  made.textContent = words
  return made
}
const pressed = (words, act) => {
  const button = make('button', '', words)
  button.type = 'button'
  button.addEventListener('click', act)
  return button
}
