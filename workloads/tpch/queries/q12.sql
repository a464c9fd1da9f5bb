-- TPC-H Q12, shipping modes and order priority
-- set mode1 = MAIL
-- set mode2 = SHIP
-- set date = 1994-01-01
select
  l_shipmode,
  sum(case when o_orderpriority in ('1-URGENT', '2-HIGH') then 1 else 0 end) as high_line_count,
  sum(case when o_orderpriority in ('1-URGENT', '2-HIGH') then 0 else 1 end) as low_line_count
from orders
join lineitem on l_orderkey = o_orderkey
where l_shipmode in ('${mode1}', '${mode2}')
  and l_commitdate < l_receiptdate
  and l_shipdate < l_commitdate
  and l_receiptdate >= date '${date}'
  and l_receiptdate < date '${date}' + interval '1' year
group by l_shipmode
order by l_shipmode
