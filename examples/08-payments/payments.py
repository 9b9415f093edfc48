"""Orders and their payments, joined when they lie within an hour; orders that nobody paid come out too. Run it: python payments.py"""

from datetime import UTC, datetime, timedelta

from millstream import StreamEnvironment, TumblingWindow, count, sum_

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
ORDERS = [{"order": i, "amount": 10 * i, "at": START + timedelta(minutes=10 * i)} for i in range(1, 7)]
PAYMENTS = [{"order": i, "paid": START + timedelta(minutes=10 * i + wait)} for i, wait in ((1, 5), (2, 50), (3, 90), (5, 1), (6, 59))]

env = StreamEnvironment("payments")
orders = env.from_rows(ORDERS, name="orders").with_event_time("at", watermark="5m")
payments = env.from_rows(PAYMENTS, name="payments").with_event_time("paid", watermark="5m")

matched = orders.join(payments, on="left.order = right.order", within={"before": "0s", "after": "1h"}, kind="left")
hourly = orders.key_by().window(TumblingWindow.of("1h")).aggregate(orders=count(), amount=sum_("amount"))

for row in matched.collect().sort_by("order").to_pylist():
    print(f"order {row['order']}: {'paid' if row['paid'] else 'not paid in time'}")
for row in hourly.collect().to_pylist():
    print(f"{row['window_start']:%H:%M}  {row['orders']} orders over {row['amount']}")
