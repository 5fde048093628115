const panel = this.closest('.tk-panel') || this.closest('.tk-controls');
if (!panel) return;
panel.addEventListener('focusin', event =>
  event.target.setAttribute('data-lm-suppress-shortcuts', 'true'));
const number = text => Number(text.replace(/[, %\u00d7+]/g, '').replace('\u2212', '-'));
const sort = heading => {
  const way = heading.getAttribute('aria-sort') === 'descending' ? 'ascending' : 'descending';
  const place = heading.cellIndex, body = heading.closest('table').tBodies[0];
  for (const other of heading.parentElement.cells) other.setAttribute('aria-sort', 'none');
  heading.setAttribute('aria-sort', way);
  const sign = way === 'ascending' ? 1 : -1;
  const known = text => text !== '\u2014';
  const rows = [...body.rows].map(row => [row.cells[place].innerText.trim(), row]);
  const numbers = rows.every(([text]) => !known(text) || !isNaN(number(text)));
  rows.sort(([a], [b]) => (known(b) - known(a)) || sign *
    (numbers ? number(a) - number(b) : a.localeCompare(b)));
  body.append(...rows.map(([, row]) => row));
};
const prepare = () => panel.querySelectorAll('.tk-scroll:not([data-ready])').forEach(region => {
  region.dataset.ready = 'yes';
  const body = region.querySelector('tbody');
  if (!body || body.rows.length < 2) return;
  for (const heading of region.querySelectorAll('thead th')) {
    heading.tabIndex = 0;
    heading.setAttribute('aria-sort', 'none');
    heading.addEventListener('click', () => sort(heading));
    heading.addEventListener('keydown', event => {
      if (event.key === 'Enter') { event.preventDefault(); sort(heading); }
    });
  }
  const save = region.parentElement.querySelector('.tk-save');
  if (body.rows.length < 8 || !save) return;
  const input = document.createElement('input');
  input.type = 'search';
  input.placeholder = 'filter';
  input.setAttribute('aria-label', `Filter: ${region.getAttribute('aria-label')}`);
  input.addEventListener('input', () => {
    const words = input.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.innerText.toLowerCase().includes(words);
  });
  save.append(input);
});
new MutationObserver(prepare).observe(panel, {childList: true, subtree: true});
prepare();
