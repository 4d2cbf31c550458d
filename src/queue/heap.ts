/** A binary heap; `before(a, b)` tells whether `a` comes out first. */
export class Heap<Item extends { heapPlace: number }> {
  readonly #items: Item[] = [];
  readonly #before: (left: Item, right: Item) => boolean;

  constructor(before: (left: Item, right: Item) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): Item | undefined {
    return this.#items[0];
  }

  push(item: Item): void {
    item.heapPlace = this.#items.length;
    this.#items.push(item);
    this.#up(item.heapPlace);
  }

  pop(): Item | undefined {
    const first = this.#items[0];
    if (first !== undefined) this.remove(first);
    return first;
  }

  /** `item` must be in this heap. */
  remove(item: Item): void {
    const place = item.heapPlace;
    const last = this.#items.pop() as Item;
    item.heapPlace = -1;
    if (last === item) return;
    this.#items[place] = last;
    last.heapPlace = place;
    this.#up(place);
    this.#down(last.heapPlace);
  }

  #up(start: number): void {
    let place = start;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!this.#before(this.#items[place] as Item, this.#items[parent] as Item)) return;
      this.#swap(place, parent);
      place = parent;
    }
  }

  #down(start: number): void {
    let place = start;
    for (;;) {
      const left = place * 2 + 1;
      const right = left + 1;
      let first = place;
      if (left < this.#items.length && this.#before(this.#items[left] as Item, this.#items[first] as Item)) first = left;
      if (right < this.#items.length && this.#before(this.#items[right] as Item, this.#items[first] as Item)) first = right;
      if (first === place) return;
      this.#swap(place, first);
      place = first;
    }
  }

  #swap(left: number, right: number): void {
    const a = this.#items[left] as Item;
    const b = this.#items[right] as Item;
    this.#items[left] = b;
    this.#items[right] = a;
    b.heapPlace = left;
    a.heapPlace = right;
  }
}
