// The table of an upload (scant_dashboard/controls/column_table.py): questions on it, its first rows, and
// in the head of each column a choice of what it is used as. A choice goes to the server, which
// answers with heads.
export function render({model, el}) {
  const find = make('input'), named = make('label', 'find', `${tr('Find a column')} `)
  const out = make('button', '', tr('Leave these out')), more = make('p', 'quiet')
  const frame = make('div', 'scroll'), bar = make('div', 'bar'), asked = make('div')
  const view = make('input'), put = make('button', '', tr('Assign')), into = make('span', 'into')
  const labeled = make('label', '', `${tr('View of these columns')} `)
  find.type = 'search'
  out.type = put.type = 'button'
  labeled.append(view)
  into.append(put, labeled)
  named.append(find)
  bar.append(named, out, into, more)
  frame.tabIndex = 0
  frame.setAttribute('role', 'group')
  frame.setAttribute('aria-label', tr('The first rows of the table'))
  let typing
  find.addEventListener('input', () => {
    clearTimeout(typing)
    typing = setTimeout(() => model.send_msg({find: find.value}), 250)
  })
  out.addEventListener('click', () => model.send_msg({out: true}))
  put.addEventListener('click', () => model.send_msg({view: view.value}))
  view.addEventListener('keydown', event => event.key === 'Enter' && put.click())

  const chosen = (label, options, value, send) => {
    const select = make('select')
    if (label) select.setAttribute('aria-label', label)
    for (const {value, label, title} of options) {
      const option = make('option', '', label)
      option.value = value
      if (title) option.title = title
      select.append(option)
    }
    select.value = value
    select.addEventListener('change', () => model.send_msg(send(select.value)))
    return select
  }
  const ask = ({text, options, taken}, i) => {
    const question = make('label', 'question', `${text} `)
    const answers = options.map((label, value) => ({label, value}))
    question.append(chosen(text, answers, taken, answer => ({question: i, answer: Number(answer)})))
    return question
  }
  const choice = (column) => chosen(
    tr('Use {name} as', {name: column.name}), [...model.options, ...(column.own ?? [])], column.role,
    role => ({column: column.name, role}))
  const draw = () => {
    const focused = el.getRootNode().activeElement?.getAttribute?.('aria-label')
    const left = frame.scrollLeft
    bar.hidden = !model.searched
    more.textContent = model.more
    out.hidden = !find.value
    into.hidden = !(find.value && model.viewed)
    asked.replaceChildren(...model.questions.map(ask))
    const table = make('table'), head = table.createTHead().insertRow(), body = table.createTBody()
    for (const column of model.columns) {
      const cell = make('th', `${column.role === '' ? 'out' : ''} ${column.role === '=' ? '' : 'named'}`)
      cell.scope = 'col'
      cell.append(make('strong', '', column.name), make('small', '', column.holds), choice(column))
      head.append(cell)
    }
    for (const row of model.rows) {
      const line = body.insertRow()
      row.forEach((word, i) => {
        const cell = line.insertCell()
        cell.textContent = word
        cell.className = `${model.columns[i]?.role === '' ? 'out' : ''} ${model.columns[i]?.number ? 'number' : ''}`
      })
    }
    frame.replaceChildren(table)
    frame.scrollLeft = left
    if (focused) for (const select of el.querySelectorAll('select'))
      if (select.getAttribute('aria-label') === focused) select.focus()
  }
  el.replaceChildren(asked, bar, frame)
  model.on('version', draw)
  draw()
}
