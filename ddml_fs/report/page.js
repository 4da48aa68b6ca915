(() => {
  "use strict";
  const table = document.getElementById("table");
  if (table) {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    const heads = Array.from(table.tHead.rows[0].cells);
    const search = document.getElementById("search");
    const only = document.getElementById("only");
    const count = document.getElementById("count");
    const texts = rows.map((row) => row.textContent.toLowerCase());

    const sort = (column) => {
      const rising = heads[column].getAttribute("aria-sort") !== "ascending";
      const numeric = heads[column].classList.contains("n");
      const key = (row) => {
        const cell = row.cells[column];
        if (!numeric) return cell.textContent;
        return cell.dataset.v === "" ? NaN : Number(cell.dataset.v);
      };
      const keyed = rows.map((row, i) => [key(row), i, row]);
      keyed.sort(([a, i], [b, j]) => {
        if (numeric) {
          // Missing values come last in both directions.
          if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b) || i - j;
          return (rising ? a - b : b - a) || i - j;
        }
        const order = a.localeCompare(b, undefined, { numeric: true });
        return (rising ? order : -order) || i - j;
      });
      heads.forEach((head, i) => {
        head.setAttribute("aria-sort", i !== column ? "none" : rising ? "ascending" : "descending");
      });
      const sorted = document.createDocumentFragment();
      keyed.forEach(([, , row]) => sorted.append(row));
      body.append(sorted);
    };

    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, i) => {
        const fits = words.every((word) => texts[i].includes(word));
        row.hidden = !fits || (only.checked && !row.classList.contains("selected"));
        shown += !row.hidden;
      });
      count.textContent = `${shown} of ${rows.length} features`;
    };

    heads.forEach((head, i) => {
      head.querySelector("button").addEventListener("click", () => sort(i));
    });
    search.addEventListener("input", filter);
    only.addEventListener("change", filter);
  }

  document.querySelectorAll(".copy").forEach((button) => {
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(source);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  });
})();
