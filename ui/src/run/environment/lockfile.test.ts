import { expect, it } from "vitest";
import { parseLockfile } from "./lockfile";

it("parses pip and conda lock files", () => {
  const lock = `# made by pip
--index-url somewhere
numpy==1.26.4 --hash=sha256:abc
torch==2.1.0+cpu ; python_version < "3.12"
mine @ file:///tmp/mine.whl
conda-thing=1.2.3=h123_0
Zlib==1
`;
  expect(parseLockfile(lock).map(({ name, version }) => [name, version])).toEqual([
    ["conda-thing", "1.2.3"],
    ["mine", "file:///tmp/mine.whl"],
    ["numpy", "1.26.4"],
    ["torch", "2.1.0+cpu"],
    ["Zlib", "1"],
  ]);
});
