// `millstream types orders.yaml priced` prints what a row is.
interface Order {
  id: bigint;
  user: string;
  country: string | null;
  items: { price: string; count: number }[];
  at: string;
}

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

export function invoke(order: Order) {
  if (order.items.length === 0) return null;
  const tax = TAX[order.country ?? ""];
  if (tax === undefined) throw new RangeError(`no tax is known for ${order.country}`);
  const net = order.items.reduce((sum, item) => sum + cents(item.price) * BigInt(item.count), 0n);
  return {
    id: order.id,
    user: order.user.toUpperCase(),
    gross: decimal((net * BigInt(100 + tax)) / 100n),
    items: order.items.reduce((sum, item) => sum + item.count, 0),
    weekday: DAYS[new Date(order.at).getUTCDay()],
  };
}
