// A tree of folders from file names with slashes.

export interface FileSize {
  name: string;
  size: number;
}

export interface TreeNode {
  name: string; // the last segment
  path: string; // from the root
  size: number;
  folder: boolean;
  children: TreeNode[];
}

/** Folders first, in natural order (step_2 before step_10); a folder with a single subfolder is merged with it. */
export function buildTree(files: FileSize[]): TreeNode[] {
  const root: TreeNode = { name: "", path: "", size: 0, folder: true, children: [] };
  const folders = new Map<string, TreeNode>([["", root]]);
  for (const file of files) {
    const parent = folderOf(file.name, folders);
    const name = file.name.slice(file.name.lastIndexOf("/") + 1);
    parent.children.push({ name, path: file.name, size: file.size, folder: false, children: [] });
  }
  return arrange(root).children;
}

function folderOf(path: string, folders: Map<string, TreeNode>): TreeNode {
  const slash = path.lastIndexOf("/");
  const folder = slash < 0 ? "" : path.slice(0, slash);
  const existing = folders.get(folder);
  if (existing) return existing;
  const node: TreeNode = { name: folder.slice(folder.lastIndexOf("/") + 1), path: folder, size: 0, folder: true, children: [] };
  folders.set(folder, node);
  folderOf(folder, folders).children.push(node);
  return node;
}

const order = new Intl.Collator("en", { numeric: true });

function arrange(node: TreeNode): TreeNode {
  if (!node.folder) return node;
  let { children, name, path } = node;
  const only = children[0];
  if (path && children.length === 1 && only!.folder) {
    const merged = arrange(only!);
    return { ...merged, name: `${name}/${merged.name}` };
  }
  children = children.map(arrange);
  children.sort((a, b) => Number(b.folder) - Number(a.folder) || order.compare(a.name, b.name));
  return { ...node, children, size: children.reduce((sum, child) => sum + child.size, 0) };
}
