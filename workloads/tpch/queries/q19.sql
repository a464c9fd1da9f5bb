-- TPC-H Q19, discounted revenue
-- set brand1 = Brand#12
-- set brand2 = Brand#23
-- set brand3 = Brand#34
-- set quantity1 = 1
-- set quantity2 = 10
-- set quantity3 = 20
select sum(l_extendedprice * (1 - l_discount)) as revenue
from lineitem
join part on p_partkey = l_partkey
where l_shipmode in ('AIR', 'AIR REG')
  and l_shipinstruct = 'DELIVER IN PERSON'
  and (
    (
      p_brand = '${brand1}'
      and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
      and l_quantity between ${quantity1} and ${quantity1} + 10
      and p_size between 1 and 5
    )
    or (
      p_brand = '${brand2}'
      and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
      and l_quantity between ${quantity2} and ${quantity2} + 10
      and p_size between 1 and 10
    )
    or (
      p_brand = '${brand3}'
      and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
      and l_quantity between ${quantity3} and ${quantity3} + 10
      and p_size between 1 and 15
    )
  )
