"use strict";
const pause = Number(document.body.dataset.refreshMs);
const state = document.getElementById("state");

// What a link or a summary is, also in another copy of the page.
function nameOf(part) {
  return part.getAttribute("href") ?? part.parentElement.id;
}

// Opened parts stay open, closed ones closed, and the focus stays where it was.
function replaceContent(next) {
  const opened = new Map();
  for (const part of document.querySelectorAll("details")) {
    opened.set(part.id, part.open);
  }
  const focused = document.querySelector("a:focus, summary:focus");
  const name = focused === null ? null : nameOf(focused);
  document.querySelector("main").replaceWith(next.querySelector("main"));
  for (const part of document.querySelectorAll("details")) {
    if (opened.has(part.id)) {
      part.open = opened.get(part.id);
    }
  }
  for (const part of document.querySelectorAll("a, summary")) {
    if (nameOf(part) === name) {
      part.focus({ preventScroll: true });
    }
  }
  document.title = next.title;
}

async function refresh() {
  // Nobody looks, or somebody is about to copy what stands there.
  if (document.hidden || !document.getSelection().isCollapsed) {
    return;
  }
  const answer = await fetch("/", { cache: "no-store" });
  const said = await answer.text();
  if (answer.ok) {
    replaceContent(new DOMParser().parseFromString(said, "text/html"));
  }
  state.textContent = answer.ok ? "" : said;
}

async function repeat() {
  try {
    await refresh();
  } catch {
    state.textContent = "kctl dashboard does not answer: what stands here is no longer up to date.";
  }
  setTimeout(repeat, pause);
}

setTimeout(repeat, pause);
