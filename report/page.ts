/** The result page: one self-contained file, readable without a network. */

interface Table {
  title: string;
  header: readonly string[];
  rows: readonly (readonly string[])[];
}

export interface PageContent {
  title: string;
  facts: readonly (readonly [string, string])[];
  tables: readonly Table[];
}

/** Text made harmless inside HTML; replies and names of models come from strangers. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const style = `
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #1b1f24; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums } .scroll { overflow-x: auto }
th, td { padding: .25rem .75rem; text-align: right; border-bottom: 1px solid #d8dee4; white-space: nowrap }
th:first-child, td:first-child { text-align: left } th { background: #f6f8fa }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem } dt { color: #57606a } dd { margin: 0 }
@media (prefers-color-scheme: dark) { body { background: #0d1117; color: #e6edf3 } th { background: #161b22 } th, td { border-color: #30363d } dt { color: #8d96a0 } }
`;

const renderTable = (table: Table): string => {
  const cells = (tag: 'th' | 'td', row: readonly string[]) =>
    `<tr>${row.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join('')}</tr>`;
  return `<h2>${escapeHtml(table.title)}</h2>
<div class="scroll"><table>
<thead>${cells('th', table.header)}</thead>
<tbody>
${table.rows.map((row) => cells('td', row)).join('\n')}
</tbody>
</table></div>`;
};

export const renderPage = (content: PageContent): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeHtml(content.title)}</title>
<style>${style}</style>
<h1>${escapeHtml(content.title)}</h1>
<dl>${content.facts.map(([name, value]) => `<dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd>`).join('')}</dl>
${content.tables.map(renderTable).join('\n')}
</html>
`;
