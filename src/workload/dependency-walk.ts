/**
 * Names in an order in which each stands behind all that it depends on. Tells of every circle, from the name at which it begins round
 * to the same name again, with the place of the dependency that closes it. As deep as there is memory: no call of it calls itself.
 */
export function walkDependencies(
  names: Iterable<string>,
  dependenciesOf: (name: string) => readonly string[],
  onCircle: (circle: readonly string[], index: number) => void,
): readonly string[] {
  const ordered = new Set<string>();
  for (const root of names) {
    if (ordered.has(root)) continue;
    const path = [{ name: root, dependencies: dependenciesOf(root), next: 0 }];
    const places = new Map([[root, 0]]);
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const index = top.next++;
      const other = top.dependencies[index];
      if (other === undefined) {
        path.pop();
        places.delete(top.name);
        ordered.add(top.name);
        continue;
      }
      const start = places.get(other);
      if (start !== undefined) onCircle([...path.slice(start).map(({ name }) => name), other], index);
      else if (!ordered.has(other)) {
        places.set(other, path.length);
        path.push({ name: other, dependencies: dependenciesOf(other), next: 0 });
      }
    }
  }
  return [...ordered];
}
