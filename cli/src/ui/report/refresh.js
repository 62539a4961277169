"use strict";
const pause = Number(document.body.dataset.refreshMs);
const state = document.getElementById("state");
// After that time without an answer, what stands here is old.
const patience = Math.max(3 * pause, 30000);
const OLD = "No longer up to date: ";
// When the content came, by the clock of this browser.
let fetched = Date.now();
// Why the last answer brought no content.
let problem = "";

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

// Also while nothing is asked, and while an answer is waited for.
function say() {
  const isOld = Date.now() - fetched > patience;
  const since = `${new Date(fetched).toISOString().slice(0, 19)}Z`;
  const said = isOld ? `${OLD}what stands here was fetched at ${since}. ${problem}`.trim() : problem;
  // What is written again is read out again.
  if (state.textContent !== said) {
    state.textContent = said;
  }
  if (isOld && !document.title.startsWith(OLD)) {
    document.title = OLD + document.title;
  }
}

async function refresh() {
  // Nobody looks, or somebody is about to copy what stands there.
  if (document.hidden || !document.getSelection().isCollapsed) {
    return;
  }
  const signal = AbortSignal.timeout(patience);
  const answer = await fetch(location.pathname, { cache: "no-store", signal });
  const said = await answer.text();
  if (answer.ok) {
    replaceContent(new DOMParser().parseFromString(said, "text/html"));
    fetched = Date.now();
  }
  problem = answer.ok ? "" : said;
}

async function repeat() {
  try {
    await refresh();
  } catch {
    problem = "kctl dashboard does not answer.";
  }
  say();
  setTimeout(repeat, pause);
}

setTimeout(repeat, pause);
setInterval(say, 5000);
