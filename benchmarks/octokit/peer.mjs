// octokit as one of the peers that the benchmarks measure, in a process of its own.
//
//     node peer.mjs plain BASE_URL ITEMS          raw reads, throttling and retry off
//     node peer.mjs throttled BASE_URL ITEMS      raw reads, throttling and retry as they come
//     node peer.mjs governed BASE_URL WORK_FILE   the work of benchmarks/governed.py, throttling and retry as they come
//
// Its last line is JSON: the seconds of the requests, the CPU seconds of the whole process, how many items failed.

import { readFileSync } from "node:fs";
import { Octokit } from "octokit";

const IN_FLIGHT = 64;

const [mode, baseUrl, what] = process.argv.slice(2);
const unplugged = { throttle: { enabled: false }, retry: { enabled: false } };
const nothing = () => {};

const client = new Octokit({
  auth: process.env.BULK_TOKEN,
  baseUrl,
  // what it says of each limited answer would be most of what is written
  log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
  ...(mode === "plain" ? unplugged : {}),
});

function* reads(items) {
  for (let number = 0; number < items; number++) {
    yield [{ owner: "acme", repo: `api-${number}` }];
  }
}

const read = ({ owner, repo }) => client.request("GET /repos/{owner}/{repo}/readme", { owner, repo });

const govern = (item) =>
  item.path === undefined ? client.rest.repos.getReadme(item) : client.rest.repos.createOrUpdateFileContents(item);

// All strands, so many at once, the items of a strand one after the other: how many items failed.
async function together(strands, send) {
  let failed = 0;
  async function work() {
    for (const strand of strands) {
      for (const item of strand) {
        try {
          await send(item);
        } catch (error) {
          if (mode !== "governed") throw error;
          failed += 1;
        }
      }
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
  return failed;
}

// one iterator that all workers share
const strands = mode === "governed" ? JSON.parse(readFileSync(what, "utf8")).values() : reads(Number(what));
const started = performance.now();
const failed = await together(strands, mode === "governed" ? govern : read);
const took_s = (performance.now() - started) / 1e3;
const { user, system } = process.cpuUsage();
console.log(JSON.stringify({ took_s, cpu_s: (user + system) / 1e6, failed }));
