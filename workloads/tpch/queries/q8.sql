-- TPC-H Q8, national market share
-- set nation = BRAZIL
-- set region = AMERICA
-- set type = ECONOMY ANODIZED STEEL
select o_year, sum(case when nation = '${nation}' then volume else 0 end) / sum(volume) as mkt_share
from (
  select
    extract(year from o_orderdate) as o_year,
    l_extendedprice * (1 - l_discount) as volume,
    n2.n_name as nation
  from part
  join lineitem on l_partkey = p_partkey
  join supplier on s_suppkey = l_suppkey
  join orders on o_orderkey = l_orderkey
  join customer on c_custkey = o_custkey
  join nation n1 on n1.n_nationkey = c_nationkey
  join region on r_regionkey = n1.n_regionkey
  join nation n2 on n2.n_nationkey = s_nationkey
  where r_name = '${region}'
    and o_orderdate between date '1995-01-01' and date '1996-12-31'
    and p_type = '${type}'
) all_nations
group by o_year
order by o_year
