"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = name => document.getElementById(name);
const outside = new Set(data.outside);
// The way that is shown: states, and what happened before each. `left` is where it leaves the story, if it does.
let tour, path, place, left;

function made(kind, text, name) {
  const element = document.createElement(kind);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
}

function fill(name, elements) { at(name).replaceChildren(...elements); }

function told() {
  return tour.states.map((state, index) => ({ state, says: index ? tour.says[index - 1] : "The start" }));
}

// The last step that the way has in common with the story; null where it is the story, or its beginning.
function leaves() {
  const story = told();
  const other = path.findIndex((each, index) =>
    index >= story.length || each.state !== story[index].state || each.says !== story[index].says);
  return other < 0 ? null : other - 1;
}

function startTour(number, from) {
  tour = data.tours[number];
  path = told();
  place = from || 0;
  left = null;
  show();
}

function go(to) {
  if (to < 0 || to >= path.length) return;
  place = to;
  show();
}

function choose(choice) {
  const says = data.texts[choice[1]], next = path[place + 1];
  if (next && next.state === choice[2] && next.says === says) return go(place + 1);
  path = path.slice(0, place + 1).concat({ state: choice[2], says });
  left = leaves();
  if (left === null) path = told();
  go(place + 1);
  // The list that was chosen from is gone: who goes on with the keyboard is where the next one begins.
  at("choices").querySelector("button:enabled")?.focus();
}

const factsOf = (state, index) => data.values[index + ":" + data.states[state][0][index]];

function instance(name, index, state, before) {
  const box = made("div", undefined, "instance"), list = made("dl");
  const old = before === null ? null : new Map(factsOf(before, index));
  for (const [fact, value] of factsOf(state, index)) {
    const held = made("dd");
    if (old && old.get(fact) !== value) {
      held.className = "changed";
      box.classList.add("changed");
      held.append(made("s", old.has(fact) ? old.get(fact) : ""), " → ");
    }
    held.append(value);
    list.append(made("dt", fact), held);
  }
  box.prepend(made("h3", name));
  box.append(list);
  return box;
}

// Messages with whether they were sent by the last step; then those that are gone by it.
function messages(state, before) {
  const gone = before === null ? [] : [...data.states[before][2]];
  const here = data.states[state][2].map(text => {
    const known = gone.indexOf(text);
    if (known >= 0) gone.splice(known, 1);
    return made("li", data.texts[text], before !== null && known < 0 ? "sent" : "");
  });
  const all = [...here, ...gone.map(text => made("li", data.texts[text], "left"))];
  return all.length ? all : [made("li", "none", "note")];
}

function choices(state) {
  const next = path[place + 1];
  let last = null;
  return data.states[state][3].flatMap(choice => {
    const [who, says, to, barred] = choice, item = made("li"), text = data.texts[says];
    const heading = who === last ? [] : [made("li", data.texts[who], "who")];
    last = who;
    const button = made("button", text);
    button.type = "button";
    if (barred !== null) button.append(" — " + data.texts[barred]);
    else if (to === null) button.append(" — leads off this page");
    button.disabled = to === null;
    if (next && next.state === to && next.says === text) button.className = "next";
    button.addEventListener("click", () => choose(choice));
    item.append(button);
    return [...heading, item];
  });
}

function closing() {
  if (left !== null || place !== path.length - 1) return "";
  if (tour.closing) return tour.closing;
  if (tour.circle !== null) return "From step " + tour.circle + " on this comes again and again.";
  return tour.promise ? "Here the promise is broken." : "";
}

function bounds(state) {
  if (outside.has(state)) return "Nothing was explored from here: outside of " + data.within + ".";
  return data.states[state][3].length ? "" : "Nothing can happen here.";
}

function show() {
  const { state, says } = path[place], before = place ? path[place - 1].state : null;
  at("promise").textContent = tour.promise
    ? tour.promise + ": " + tour.about : "No promise is broken in what was explored: choose what happens.";
  at("where").textContent = "step " + place + " of " + (path.length - 1) + (left === null ? "" : ", off the story");
  at("says").textContent = says;
  at("closing").textContent = closing();
  at("bounds").textContent = bounds(state);
  at("budgets").textContent = data.budgets
    .map((name, index) => name + " " + data.states[state][1][index]).join(", ") || "no fault";
  fill("instances", data.instances.map((name, index) => instance(name, index, state, before)));
  fill("messages", messages(state, before));
  fill("choices", choices(state));
  at("back").disabled = place === 0;
  at("on").disabled = place === path.length - 1;
  at("return").disabled = left === null;
}

at("back").addEventListener("click", () => go(place - 1));
at("on").addEventListener("click", () => go(place + 1));
at("return").addEventListener("click", () => startTour(data.tours.indexOf(tour), left));
at("stories").addEventListener("change", event => startTour(Number(event.target.value)));
document.addEventListener("keydown", event => {
  if (event.target.tagName === "SELECT" || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "ArrowLeft") go(place - 1);
  if (event.key === "ArrowRight") go(place + 1);
});
fill("stories", data.tours.map((each, index) => {
  const option = made("option", each.promise || "the start");
  option.value = index;
  return option;
}));
startTour(0);
