// The controls: a slider for each number and duration, a list for each choice; their values are text.

const UNITS = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 };

function size(text) {
  if (text === "none") return -1;
  if (/^\d+$/.test(text)) return Number(text);
  return [...text.matchAll(/(\d+)(ms|s|m|h|d)/g)].reduce((sum, [, number, unit]) => sum + number * UNITS[unit], 0);
}

export class Controls {
  // `places` are elements by group; `changed` is called when the user changes a control.
  constructor(places, changed) {
    Object.assign(this, { places, changed, all: [], values: {}, base: {} });
  }

  build(described) {
    this.all = described.map((each) => {
      const box = document.createElement("label");
      const name = document.createElement("span");
      const value = document.createElement("output");
      const input = document.createElement(each.kind === "choice" ? "select" : "input");
      box.className = "control";
      box.title = each.help;
      name.textContent = each.label;
      input.id = `set-${each.name}`;
      input.setAttribute("aria-description", each.help);
      if (each.kind === "choice") input.append(...each.steps.map((step) => new Option(step.replaceAll("_", " "), step)));
      else Object.assign(input, { type: "range", min: 0, step: 1 });
      box.append(name, value, input);
      const own = { ...each, box, value, input, places: each.steps };
      input.addEventListener("input", () => {
        this.values[each.name] = each.kind === "choice" ? input.value : own.places[Number(input.value)];
        this.show();
        this.changed();
      });
      this.places[each.group].append(box);
      return own;
    });
  }

  set(values, base) {
    Object.assign(this, { values: { ...values }, base });
    for (const each of this.all) {
      if (each.kind === "choice") continue;
      // A value that is not a position of the slider gets one.
      const wanted = [base[each.name], values[each.name]].filter((text) => /^(none|[0-9a-z]{1,20})$/.test(text));
      each.places = [...new Set([...each.steps, ...wanted])].sort((one, other) => size(one) - size(other));
      each.input.max = each.places.length - 1;
    }
    this.show();
  }

  show() {
    for (const each of this.all) {
      const text = this.values[each.name];
      const shown = `${text}${each.unit ? ` ${each.unit}` : ""}`;
      if (each.kind === "choice") each.input.value = text;
      else {
        each.input.value = each.places.indexOf(text);
        each.input.setAttribute("aria-valuetext", shown);
        each.value.textContent = shown;
      }
      each.box.hidden = Boolean(each.only) && !each.only[1].includes(this.values[each.only[0]]);
      each.box.classList.toggle("changed", text !== this.base[each.name]);
    }
  }

  changes() {
    return Object.fromEntries(this.all.map(({ name }) => [name, this.values[name]]).filter(([name, text]) => text !== this.base[name]));
  }
}
