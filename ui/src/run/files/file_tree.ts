// Names with slashes as a tree of folders.

export interface Named {
  name: string;
  size: number;
}

export interface Branch {
  name: string; // the last part
  path: string; // from the top
  size: number;
  folder: boolean;
  children: Branch[];
}

/** Folders first, each by name as people count (step_2 before step_10); a folder of one folder shares its line. */
export function treeOf(files: Named[]): Branch[] {
  const top: Branch = { name: "", path: "", size: 0, folder: true, children: [] };
  const folders = new Map<string, Branch>([["", top]]);
  for (const file of files) {
    const parent = folderOf(file.name, folders);
    const name = file.name.slice(file.name.lastIndexOf("/") + 1);
    parent.children.push({ name, path: file.name, size: file.size, folder: false, children: [] });
  }
  return arranged(top).children;
}

function folderOf(path: string, folders: Map<string, Branch>): Branch {
  const cut = path.lastIndexOf("/");
  const folder = cut < 0 ? "" : path.slice(0, cut);
  const known = folders.get(folder);
  if (known) return known;
  const made: Branch = { name: folder.slice(folder.lastIndexOf("/") + 1), path: folder, size: 0, folder: true, children: [] };
  folders.set(folder, made);
  folderOf(folder, folders).children.push(made);
  return made;
}

const order = new Intl.Collator("en", { numeric: true });

function arranged(branch: Branch): Branch {
  if (!branch.folder) return branch;
  let { children, name, path } = branch;
  const only = children[0];
  if (path && children.length === 1 && only!.folder) {
    const below = arranged(only!);
    return { ...below, name: `${name}/${below.name}` };
  }
  children = children.map(arranged);
  children.sort((a, b) => Number(b.folder) - Number(a.folder) || order.compare(a.name, b.name));
  return { ...branch, children, size: children.reduce((sum, child) => sum + child.size, 0) };
}
