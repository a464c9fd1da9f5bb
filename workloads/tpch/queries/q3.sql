-- TPC-H Q3, shipping priority
-- set segment = BUILDING
-- set date = 1995-03-15
select
  l_orderkey,
  sum(l_extendedprice * (1 - l_discount)) as revenue,
  o_orderdate,
  o_shippriority
from customer
join orders on o_custkey = c_custkey
join lineitem on l_orderkey = o_orderkey
where c_mktsegment = '${segment}' and o_orderdate < date '${date}' and l_shipdate > date '${date}'
group by l_orderkey, o_orderdate, o_shippriority
order by revenue desc, o_orderdate
limit 10
