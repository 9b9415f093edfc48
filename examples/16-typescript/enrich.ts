// `millstream types orders.yaml priced > row.d.ts` declares `Row` and `Result`, and `millstream check --types orders.yaml` compares them.
const TAX: Record<string, number> = { de: 19, fr: 20, us: 0 };
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** Decimals arrive as text, so that no cent is lost: they are counted in cents. */
function cents(price: string): bigint {
  return BigInt(price.replace(".", ""));
}

function decimal(cents: bigint): string {
  const text = String(cents).padStart(3, "0");
  return `${text.slice(0, -2)}.${text.slice(-2)}`;
}

export function invoke(order: Row): Result | null {
  const items = (order.items ?? []).filter((item) => item !== null);
  if (items.length === 0) return null;
  const tax = TAX[order.country ?? ""];
  if (tax === undefined) throw new RangeError(`no tax is known for ${order.country}`);
  const net = items.reduce((sum, item) => sum + cents(item.price ?? "0.00") * BigInt(item.count ?? 0), 0n);
  return {
    id: order.id,
    user: order.user?.toUpperCase(),
    gross: decimal((net * BigInt(100 + tax)) / 100n),
    items: items.reduce((sum, item) => sum + (item.count ?? 0), 0),
    weekday: order.at && DAYS[new Date(order.at).getUTCDay()],
  };
}
