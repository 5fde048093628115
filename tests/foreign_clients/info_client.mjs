// Ask every operation that we have through the InfoClient of @nktkas/hyperliquid, and print the
// answers as JSON. Arguments: the folder it is installed in, the address, the key, and the
// parameters by method.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, apiUrl, key] = process.argv.slice(2);
const asked = JSON.parse(readFileSync(0, "utf8"));
const home = join(folder, "node_modules", "@nktkas", "hyperliquid");
const { HttpTransport, InfoClient } = await import(pathToFileURL(join(home, "esm", "mod.js")));
const headers = { Authorization: `Bearer ${key}` };
const client = new InfoClient({ transport: new HttpTransport({ apiUrl, fetchOptions: { headers } }) });
const found = {};
for (const [method, parameters] of Object.entries(asked)) {
  try {
    found[method] = { answer: await (parameters ? client[method](parameters) : client[method]()) };
  } catch (error) {
    found[method] = { error: `${error.name}: ${error.message}` };
  }
}
const methods = Object.getOwnPropertyNames(InfoClient.prototype);
console.log(JSON.stringify({ methods, found }));
