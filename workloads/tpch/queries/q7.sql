-- TPC-H Q7, volume shipping
-- set nation1 = FRANCE
-- set nation2 = GERMANY
select supp_nation, cust_nation, l_year, sum(volume) as revenue
from (
  select
    n1.n_name as supp_nation,
    n2.n_name as cust_nation,
    extract(year from l_shipdate) as l_year,
    l_extendedprice * (1 - l_discount) as volume
  from supplier
  join lineitem on l_suppkey = s_suppkey
  join orders on o_orderkey = l_orderkey
  join customer on c_custkey = o_custkey
  join nation n1 on n1.n_nationkey = s_nationkey
  join nation n2 on n2.n_nationkey = c_nationkey
  where l_shipdate between date '1995-01-01' and date '1996-12-31'
    and (
      (n1.n_name = '${nation1}' and n2.n_name = '${nation2}')
      or (n1.n_name = '${nation2}' and n2.n_name = '${nation1}')
    )
) shipping
group by supp_nation, cust_nation, l_year
order by supp_nation, cust_nation, l_year
