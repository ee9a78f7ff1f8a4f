"use strict";
for (const field of document.querySelectorAll("input[type=search]")) {
  const rows = document.querySelectorAll(`#${field.dataset.rows} tbody tr`);
  const left = document.getElementById(`${field.dataset.rows}-left`);
  field.hidden = false;
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    left.textContent = `${shown} of ${rows.length}`;
  });
}
